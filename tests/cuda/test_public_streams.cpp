// Streams as programs use them: make_stream, StreamGuard, record_stream, make_event.
#include <thread>

#include <braid/core/worker.hpp>

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

TEST_CASE("public streams: a guard is of one thread and one device, and nests", "[cuda][streams]") {
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
        std::vector<Stream*> in_workers(all.size());  // they continue this thread's work
        run_on_devices(all, [&](std::size_t i) { in_workers[i] = &current_stream(device); });
        CHECK(in_workers == std::vector<Stream*>(all.size(), b.get()));
      }
      CHECK(&current_stream(device) == a.get());
    }
    CHECK(&current_stream(device) == own);
  }
}

TEST_CASE("public streams: results in order by wait_for and by events", "[cuda][streams]") {
  for (const Device device : every_device()) {
    INFO(device);
    const std::shared_ptr<Stream> side = make_stream(device);
    const std::unique_ptr<Event> ready = make_event(device);
    for (int round = 0; round < 5; ++round) {
      const Tensor x = full({4000}, round, {.device = device});
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

TEST_CASE("public streams: a stream goes on while another is held up", "[cuda][streams]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  const std::shared_ptr<Stream> side = make_stream(device);
  const Tensor x = arange(1000, {.device = device, .dtype = DType::float32});
  synchronize(device);
  Gate gate(current_stream(device));
  const Tensor behind = x + 1;  // behind the gate
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

TEST_CASE("public streams: recorded memory is not used again too early", "[cuda][streams]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  const std::shared_ptr<Stream> side = make_stream(device);
  empty_cache(device);
  Tensor x = full({5000}, 7, {.device = device});
  side->wait_for(current_stream(device));
  Tensor y;
  {
    Gate gate(*side);
    {
      const StreamGuard guard(side);
      y = x + 1;
    }
    record_stream(x, *side);
    record_stream(x, *side);  // once is enough, twice is no more
    x = {};
    x = full({5000}, -100, {.device = device});  // the same memory
    CHECK_FALSE(gate.late());
  }
  current_stream(device).wait_for(*side);
  record_stream(y, current_stream(device));
  CHECK(y.to_vector<double>() == std::vector<double>(5000, 8));
  CHECK(x.to_vector<double>() == std::vector<double>(5000, -100));
}

TEST_CASE("public streams: memory goes back to the stream that it came from", "[cuda][streams]") {
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
      CHECK(kept.id()->data() == first);  // at once
      CHECK(memory_stats(device).hits == before.hits + 1);
      CHECK(memory_stats(device).in_use > before.in_use);
      side->synchronize();
    }
    CHECK(kept.to_vector<double>() == std::vector<double>(3000, 1));  // keeps its stream alive
  }
  CHECK(memory_stats(device).in_use == before.in_use);
  CHECK(full({3000}, 2, {.device = device}).sum().item<double>() == 6000);
}

TEST_CASE("public streams: a backward may run on a stream of its own", "[cuda][streams]") {
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

TEST_CASE("public streams: what is refused", "[cuda][streams][errors]") {
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
