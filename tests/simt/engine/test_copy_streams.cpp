// Batches split over devices: copies run on separate streams, work runs on the caller's streams,
// and nothing waits for a whole device.
#include <chrono>
#include <iostream>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <braid/braid.hpp>

#include "child.hpp"
#include "cuda/gate.hpp"
#include "findings.hpp"
#include "primitives/copy_streams.hpp"
#include "simt/cuda_runtime.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"

using namespace braid;
using braid::test::findings;
using braid::test::Gate;

TEST_CASE("copy streams: chunks come while their devices are busy", "[copies]") {
  const auto split = [](Device from) {
    return test::in_child(3, [from] {
      const Tensor x = arange(3000, {.device = from, .dtype = DType::float32}).reshape({30, 100});
      // creates the streams, and tests the copies between GPUs
      (void)parallel::scatter(x, devices());
      const Device busy("cuda:1");
      std::vector<Tensor> chunks;
      std::string text = "in time";
      {
        synchronize(busy);
        const Gate gate(current_stream(busy));
        chunks = parallel::scatter(x, devices());
        {
          const StreamGuard guard(parallel::copy_stream(busy));
          if (!equal(chunks[1].to(Device()), x.to(Device()).narrow(0, 10, 10))) text = "not there";
        }
        if (gate.late()) text += ", but behind the device's work";
      }
      for (std::size_t i = 0; i < 3; ++i)
        if (!equal(chunks[i].to(Device()),
                   x.to(Device()).narrow(0, static_cast<std::int64_t>(i) * 10, 10)))
          text += str(", wrong chunk ", i);
      return text + findings();
    });
  };
  CHECK(split(Device("cpu:0")) == "in time");
  CHECK(split(Device("cuda:0")) == "in time");
}

TEST_CASE("copy streams: a device goes on only when its chunk is there", "[copies]") {
  const std::string seen = test::in_child(3, [] {
    const Device device("cuda:1");
    const Tensor x = arange(3000, {.dtype = DType::float32}).reshape({30, 100});
    (void)parallel::scatter(x, devices());
    std::string text;
    for (int round = 0; round < 3; ++round) {
      Tensor y;
      const std::unique_ptr<Event> done = make_event(device);
      bool early = false;
      {
        synchronize(device);
        const Gate gate(*parallel::copy_stream(device));
        std::vector<Tensor> chunks = parallel::scatter(x + round, devices());
        y = chunks[1] * 2;
        chunks.clear();  // its memory is the copy stream's again, after the product
        current_stream(device).record(*done);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        early = done->done();
      }
      text += early ? "early " : "waits ";
      if (!equal(y.to(Device()), (x + round).narrow(0, 10, 10) * 2)) text += "with wrong numbers ";
    }
    return text + findings();
  });
  CHECK(seen == "waits waits waits ");
}

TEST_CASE("copy streams: how often a step waits, and for what", "[copies]") {
  const std::string seen = test::in_child(3, [] {
    parallel::DataParallel model(nn::Linear(5, 2));
    to(model, best_device());
    optim::SGD optimizer(parameters(model), {.lr = 0.1});
    const Tensor x = randn({30, 5});  // on the host
    const auto pass = [&] { exp(model(x)).mean().backward(); };
    const auto step = [&] {
      optimizer.zero_grad();
      pass();
      optimizer.step();
    };
    for (int i = 0; i < 20; ++i) pass();  // so that every piece of the rings has been used
    const std::uint64_t legacy = simt::legacy_operations();
    std::map<std::string, std::uint64_t> before;
    const char* const counted[] = {"cudaDeviceSynchronize",
                                   "cudaStreamSynchronize",
                                   "cudaEventSynchronize",
                                   "cudaStreamQuery",
                                   "cudaMalloc",
                                   "cudaFree",
                                   "cudaMemcpy",
                                   "cudaMemset",
                                   "cudaMemcpyAsync"};
    for (const char* const call : counted) before[call] = simt::calls(call);
    constexpr std::uint64_t kSteps = 5;
    for (std::uint64_t i = 0; i < kSteps; ++i) pass();
    std::string text;
    for (const char* const call : counted)
      if (const std::uint64_t n = simt::calls(call) - before[call]; n != 0)
        text += str(call, " ", n / kSteps, n % kSteps == 0 ? "; " : " and a part; ");
    text += str("on the legacy stream ", simt::legacy_operations() - legacy, "\n");
    for (int i = 0; i < 3; ++i) step();
    const auto called = [&](const char* call) {
      simt::fail_call(1, cudaErrorInvalidValue, true, call);
      try {
        step();
      } catch (const Error& e) {
        if (!simt::failed_call()) text += str(e.what(), "; ");
      }
      const bool failed = simt::failed_call();
      simt::fail_call(0, cudaSuccess);
      return failed;
    };
    for (const char* const call :
         {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaStreamQuery", "cudaMemcpy",
          "cudaMemcpyPeer", "cudaMalloc", "cudaFree", "cudaStreamCreateWithFlags"})
      if (called(call)) text += str(call, " was called; ");
    if (called("cudaMemcpyAsync")) text += "copies";  // this call is made: the check works
    return text + findings();
  });
  std::cout << "SHOWS: a forward and backward on three devices, batch on the host: "
            << seen.substr(0, seen.find('\n')) << '\n';
  // Three chunks are copied in; they share a piece of pinned memory with earlier ones. One copy is
  // within cuda:0. Those between devices are peer copies.
  CHECK(seen == "cudaMemcpyAsync 4; on the legacy stream 0\ncopies");
}

TEST_CASE("a copy to the device is one call from pinned memory, and pieces otherwise", "[copies]") {
  const std::string seen = test::in_child(1, [] {
    const Tensor x = rand({1 << 18}), pinned = x.pin_memory();  // 1 MiB
    const Device device = best_device();
    std::string text;
    const auto count = [&](const char* how, auto copy) {
      const char* const calls[] = {"cudaMemcpyAsync", "cudaHostAlloc", "cudaMallocHost",
                                   "cudaEventSynchronize", "cudaStreamSynchronize"};
      std::map<std::string, std::uint64_t> before;
      for (const char* const call : calls) before[call] = simt::calls(call);
      std::vector<Tensor> there;
      for (int i = 0; i < 3; ++i) there.push_back(copy());
      text += str(how, ":");
      for (const char* const call : calls)
        if (const std::uint64_t n = simt::calls(call) - before[call]; n != 0)
          text += str(" ", call, " ", n);
      text += "; ";
      for (const Tensor& y : there)
        if (!equal(y.to(Device()), x)) text += "wrong; ";
    };
    count("pinned", [&] { return pinned.to(device, true); });
    count("pinned, read at once", [&] { return pinned.to(device); });
    count("pageable", [&] { return x.to(device, true); });
    return text + findings();
  });
  CHECK(seen ==
        "pinned: cudaMemcpyAsync 3; "
        "pinned, read at once: cudaMemcpyAsync 12 cudaMallocHost 1; "
        "pageable: cudaMemcpyAsync 12; ");
}

TEST_CASE("without a device no memory is pinned", "[copies]") {
  const std::string seen = test::in_child(0, [] {
    const Tensor x = rand({12});
    std::string text = x.is_pinned() ? "pinned; " : "";
    const auto refused = [&](auto make) {
      try {
        (void)make();
      } catch (const DeviceError& e) {
        text += str(e.what(), "; ");
      }
    };
    refused([&] { return x.pin_memory(); });
    refused([] { return zeros({3}, {.pinned_memory = true}); });
    set_warning_handler([&](std::string_view warning) { text += str("warning: ", warning); });
    const data::TensorDataset rows(x);
    data::DataLoader loader(rows, {.batch_size = 12, .pin_memory = true});
    for (const Tensor& batch : loader)
      if (batch.is_pinned() || !equal(batch, x)) text += "; pinned";
    return text;
  });
  CHECK(seen ==
        "pin_memory: expected a CUDA device, whose driver pins memory of the host, got none; "
        "pinned_memory: expected a CUDA device, whose driver pins memory of the host, got none; "
        "warning: DataLoader: expected a CUDA device for pin_memory, got none; the batches are not "
        "in pinned memory");
}

TEST_CASE("the emulation counts what is queued on the legacy stream", "[copies]") {
  const std::string seen = test::in_child(3, [] {
    void* memory = nullptr;
    std::string text = str(cudaMalloc(&memory, 16) == cudaSuccess);
    for (int i = 0; i < 2; ++i) text += str(cudaMemsetAsync(memory, 0, 16, nullptr) == cudaSuccess);
    return text + str(simt::legacy_operations(), simt::calls("cudaMemsetAsync"),
                      simt::calls("cudaMemset"));
  });
  CHECK(seen == "111220");
}

TEST_CASE("streams: replicas work on the caller's current streams", "[copies]") {
  const std::string seen = test::in_child(3, [] {
    parallel::DataParallel model(nn::Linear(5, 2));
    to(model, best_device());
    const Tensor x = randn({30, 5});
    const Tensor expected = model(x).to(Device());
    std::vector<std::shared_ptr<Stream>> side;
    for (const Device d : devices()) {
      side.push_back(make_stream(d));
      synchronize(d);
    }
    std::string text = "on the caller's";
    const Gate gate(current_stream(Device("cuda:1")));
    {
      const StreamGuard first(side[0]), second(side[1]), third(side[2]);
      const Tensor y = model(x);
      if (!allclose(y.to(Device()), expected)) text += ", wrong numbers";
    }
    if (gate.late()) text = "on the device's own";
    return text + findings();
  });
  CHECK(seen == "on the caller's");
}

TEST_CASE("a product with several batch dims is one launch where one stride steps through them",
          "[launches]") {
  const std::string seen = test::in_child(1, [] {
    const Tensor q = randn({2, 3, 4, 5}, {.device = best_device()}),
                 heads = randn({2, 4, 3, 5}, {.device = best_device()}).transpose(1, 2),
                 one = randn({3, 5, 4}, {.device = best_device()});
    const auto launches = [](const Tensor& a, const Tensor& b) {
      simt::clear_launch_log();
      synchronize(matmul(a, b).device());
      return simt::launch_log().size();
    };
    return str(launches(q, q.transpose(-1, -2)), ", ", launches(heads, q.transpose(-1, -2)), ", ",
               launches(q, one), ", ", launches(q, one.slice(0, 0, 1)));
  });
  CHECK(seen == "1, 2, 2, 1");
}

TEST_CASE("a batch split over three devices runs linear_forward on each of them", "[launches]") {
  const std::string seen = test::in_child(3, [] {
    parallel::DataParallel model(nn::Linear(5, 2));
    to(model, best_device());
    simt::clear_launch_log();
    const Tensor y = model(randn({30, 5}, {.device = best_device()}));
    synchronize(y.device());
    std::set<int> on;
    for (const simt::LaunchRecord& launch : simt::launch_log())
      if (launch.kernel.find("linear_forward") != std::string::npos) on.insert(launch.device);
    std::string text = str(y.shape(), " on", "");
    for (const int device : on) text += str(" ", device);
    return text;
  });
  CHECK(seen == "[30, 2] on 0 1 2");
}
