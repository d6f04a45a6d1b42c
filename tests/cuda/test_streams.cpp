// Tests of streams and events: make_stream, StreamGuard, record_stream, make_event. Stream
// dependencies are tested in test_stream_dependencies.cpp.
#include <thread>

#include <braid/core/internal/worker.hpp>

#include "cuda_support.hpp"
#include "gate.hpp"

using namespace braid;
using namespace braid::test;

namespace {

std::vector<Device> every_device() {
  std::vector<Device> all = devices(DeviceType::cuda);
  all.insert(all.begin(), Device());
  return all;
}

}  // namespace

TEST_CASE("streams: a guard is of one thread and one device, and nests", "[streams]") {
  const std::vector<Device> all = every_device();
  for (const Device device : all) {
    INFO(device);
    Stream* const own = &current_stream(device);
    CHECK(own == device_context(device).stream);
    const std::shared_ptr<Stream> a = make_stream(device), b = make_stream(device);
    CHECK(a->device() == device);
    {
      const StreamGuard outer(a);
      CHECK(&current_stream(device) == a.get());
      {
        const StreamGuard inner(b);
        CHECK(&current_stream(device) == b.get());
        for (const Device other : all)
          if (other != device) CHECK(&current_stream(other) == device_context(other).stream);
        Stream* seen = nullptr;
        std::thread([&] { seen = &current_stream(device); }).join();
        CHECK(seen == own);
        std::vector<Stream*> in_workers(all.size());  // workers use this thread's current stream
        run_on_devices(all, [&](std::size_t i) { in_workers[i] = &current_stream(device); });
        CHECK(in_workers == std::vector<Stream*>(all.size(), b.get()));
      }
      CHECK(&current_stream(device) == a.get());
    }
    CHECK(&current_stream(device) == own);
  }
}

TEST_CASE("streams: results in order by wait_for and by events", "[streams]") {
  for (const Device device : every_device()) {
    INFO(device);
    const std::shared_ptr<Stream> side = make_stream(device);
    const std::unique_ptr<Event> ready = make_event(device);
    for (int round = 0; round < 5; ++round) {
      const Tensor x = full({4000}, round + 0.0, {.device = device});
      side->wait_for(current_stream(device));
      Tensor y, z;
      {
        const StreamGuard guard(side);
        y = x * 2 + 1;
        record_stream(x, *side);
        side->record(*ready);
        z = y * 3;
      }
      current_stream(device).wait(*ready);
      record_stream(y, current_stream(device));
      CHECK((y + 1).to_vector<double>() == std::vector<double>(4000, 2 * round + 2));
      current_stream(device).wait_for(*side);
      record_stream(z, current_stream(device));
      CHECK(z.sum().item<double>() == 4000.0 * 3 * (2 * round + 1));
      CHECK(ready->done());
    }
  }
}

TEST_CASE("streams: a stream goes on while another is held up", "[streams]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  const std::shared_ptr<Stream> side = make_stream(device);
  const Tensor x = arange(1000, {.device = device, .dtype = DType::float32});
  synchronize(device);
  Gate gate(current_stream(device));
  const Tensor behind = x + 1;  // queued after the gate
  const std::unique_ptr<Event> done = make_event(device);
  current_stream(device).record(*done);
  {
    const StreamGuard guard(side);
    CHECK((x * 2).sum().item<double>() == 999'000);
  }
  CHECK_FALSE(done->done());
  CHECK_FALSE(gate.late());
  gate.open();
  CHECK(behind.sum().item<double>() == 500'500);
}

TEST_CASE("streams: memory goes back to the stream that it came from", "[streams]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  empty_cache(device);
  const MemoryStats before = memory_stats(device);
  {
    Tensor kept;
    {
      const std::shared_ptr<Stream> side = make_stream(device);
      const StreamGuard guard(side);
      kept = ones({3000}, {.device = device});
      const void* const first = kept.id()->data();
      kept = {};
      kept = ones({3000}, {.device = device});
      CHECK(kept.id()->data() == first);  // reused immediately
      CHECK(memory_stats(device).hits == before.hits + 1);
      CHECK(memory_stats(device).in_use > before.in_use);
      side->synchronize();
    }
    CHECK(kept.to_vector<double>() == std::vector<double>(3000, 1));  // keeps its stream alive
  }
  CHECK(memory_stats(device).in_use == before.in_use);
  CHECK(full({3000}, 2.0, {.device = device}).sum().item<double>() == 6000);
}

TEST_CASE("streams: each has counters for its long reductions", "[streams]") {
  NEEDS_DEVICES(1);
  constexpr std::int64_t n = 20000;
  const Device device = cuda_device(0);
  const Tensor x = arange(n, {.device = device, .dtype = DType::int64});
  const std::int64_t right = n * (n - 1) / 2;
  for (int round = 0; round < 4; ++round) {  // a later stream gets the counters of an earlier one
    const std::shared_ptr<Stream> a = make_stream(device), b = make_stream(device);
    a->wait_for(current_stream(device));
    b->wait_for(current_stream(device));
    std::vector<Tensor> sums;
    for (int i = 0; i < 3; ++i) {
      for (const auto& stream : {a, b}) {
        const StreamGuard guard(stream);
        sums.push_back(x.sum());
      }
      sums.push_back(x.sum());
    }
    current_stream(device).wait_for(*a);
    current_stream(device).wait_for(*b);
    for (const Tensor& sum : sums) CHECK(sum.item<std::int64_t>() == right);
  }
  // streams that end while they work: the next one has the counters, and nothing else orders them
  synchronize(device);
  for (int i = 0; i < 4; ++i) {
    const StreamGuard guard(make_stream(device));
    (void)x.sum();  // a result would keep its stream
  }
  CHECK(x.sum().item<std::int64_t>() == right);
  // two threads whose first reductions are on one stream
  const std::shared_ptr<Stream> shared = make_stream(device);
  shared->wait_for(current_stream(device));
  std::vector<Tensor> sums(2);
  std::vector<std::thread> threads;
  for (Tensor& sum : sums)
    threads.emplace_back([&] {
      const StreamGuard guard(shared);
      for (int i = 0; i < 3; ++i) sum = x.sum();
    });
  for (std::thread& thread : threads) thread.join();
  current_stream(device).wait_for(*shared);
  for (const Tensor& sum : sums) CHECK(sum.item<std::int64_t>() == right);
}

TEST_CASE("streams: a backward may run on a stream of its own", "[streams]") {
  for (const Device device : every_device()) {
    const std::shared_ptr<Stream> side = make_stream(device);
    const Tensor w = full({64, 64}, 0.5, {.device = device, .requires_grad = true});
    side->wait_for(current_stream(device));
    {
      const StreamGuard guard(side);
      (w * w).sum().backward();
      CHECK(w.grad().to_vector<double>() == std::vector<double>(64 * 64, 1));
      w.set_grad({});
    }
    current_stream(device).wait_for(*side);
  }
}

TEST_CASE("streams: what is refused", "[streams]") {
  CHECK_THROWS_TEXT(ArgumentError, "StreamGuard: expected a stream, got none",
                    StreamGuard(nullptr));
  CHECK_THROWS_TEXT(DeviceError, "got cpu:63", make_stream(Device("cpu:63")));
  CHECK_THROWS_TEXT(DeviceError, "got cpu:63", make_event(Device("cpu:63")));
  NEEDS_DEVICES(1);
  const std::shared_ptr<Stream> side = make_stream(cuda_device(0));
  CHECK_THROWS_TEXT(
      DeviceError,
      "record_stream: expected a stream of the tensor's device cpu:0, got one of cuda:0",
      record_stream(ones({2}), *side));
}

TEST_CASE("streams: an event is done when what came before it is", "[streams]") {
  NEEDS_DEVICES(1);
  Stream& stream = current_stream(cuda_device(0));
  const std::unique_ptr<Event> event = backend(0).make_event();
  CHECK(event->done());  // never recorded
  CHECK_NOTHROW(event->synchronize());
  Tensor x = ones({1000}, {.device = cuda_device(0)});
  for (int i = 0; i < 10; ++i) x = x + x;
  stream.record(*event);
  event->synchronize();
  CHECK(event->done());
  stream.record(*event);  // a second time
  stream.synchronize();
  CHECK(event->done());
}

TEST_CASE("streams: a wait orders two devices, and CUDA and the CPU", "[streams]") {
  NEEDS_DEVICES(1);
  DeviceBackend& cpu = *device_context(Device()).backend;
  const std::unique_ptr<Event> of_cpu = cpu.make_event(), of_cuda = backend(0).make_event();
  Stream &host = current_stream(Device()), &first = current_stream(cuda_device(0));
  const Tensor x = full({1000}, 4.0, {.device = cuda_device(0)});
  host.record(*of_cpu);
  CHECK_NOTHROW(first.wait(*of_cpu));
  first.record(*of_cuda);
  host.wait(*of_cuda);  // blocks the host thread
  CHECK(of_cuda->done());
  CHECK_NOTHROW(host.record(*of_cuda));
  CHECK_NOTHROW(first.record(*of_cpu));
  CHECK(of_cpu->done());
  NEEDS_DEVICES(2);
  first.record(*of_cuda);
  current_stream(cuda_device(1)).wait(*of_cuda);
  CHECK(x.to(cuda_device(1)).sum().item<double>() == 4000);
}

TEST_CASE("streams: each thread may work on each device", "[streams]") {
  NEEDS_DEVICES(2);
  std::vector<double> sums(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&sums, t] {
      Tensor x =
          full({1000}, static_cast<double>(t), {.device = cuda_device(static_cast<int>(t % 2))});
      for (int i = 0; i < 20; ++i) x = (x + 1).to(cuda_device(static_cast<int>(i % 2)));
      sums[t] = x.sum().item<double>();
    });
  for (std::thread& t : threads) t.join();
  for (std::size_t t = 0; t < sums.size(); ++t)
    CHECK(sums[t] == 1000.0 * (20.0 + static_cast<double>(t)));
}
