// Tests of the stream-ordered caching allocator, through the device interface.
#include <iostream>
#include <set>
#include <thread>

#include "cuda/runtime/block_pool.hpp"
#include "cuda_support.hpp"
#include "gate.hpp"
#if BRAID_CUDA_SIMT
#include "simt/runtime/control.hpp"
#endif

using namespace braid;
using namespace braid::test;

namespace {

MemoryStats stats() { return memory_stats(cuda_device(0)); }
std::size_t held() { return stats().in_use + stats().cached; }

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
#if BRAID_CUDA_SIMT
constexpr std::size_t kGuard = 256;  // guard bytes between blocks, for the checker
#else
constexpr std::size_t kGuard = 0;
#endif

/// Empties the cache before the test, and restores the allocator's settings after it.
struct Clean {
  Clean() {
    synchronize(cuda_device(0));
    empty_cache(cuda_device(0));
  }
  ~Clean() {
    fail_allocation(cuda_device(0), 0);
    set_memory_capacity(cuda_device(0), 0);
    empty_cache(cuda_device(0));
  }
};

}  // namespace

TEST_CASE("allocator: blocks are aligned, apart, counted in units of 256 bytes", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const MemoryStats before = stats();
  const std::size_t sizes[] = {1, 256, 257, 1024, 1025, 5000, 65536, kMiB + 1, 3 * kMiB};
  {
    std::vector<std::unique_ptr<Held>> blocks;
    std::set<void*> at;
    std::size_t counted = 0;
    for (const std::size_t bytes : sizes) {
      blocks.push_back(std::make_unique<Held>(0, bytes));
      at.insert(blocks.back()->data());
      CHECK(reinterpret_cast<std::uintptr_t>(blocks.back()->data()) % 256 == 0);
      counted += (bytes + 255) / 256 * 256 + kGuard;
      CHECK(stats().in_use == before.in_use + counted);
    }
    CHECK(at.size() == std::size(sizes));
    CHECK(stats().allocations == before.allocations + std::size(sizes));
  }
  CHECK(stats().in_use == before.in_use);
  CHECK(stats().releases == before.releases + std::size(sizes));
  const std::size_t before_emptying = stats().cached;
  empty_cache(cuda_device(0));
  // one segment of small blocks, and one of the two larger ones
  CHECK(stats().cached + 22 * kMiB <= before_emptying);
}

TEST_CASE("allocator: a new segment is as large as the rule says", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const std::pair<std::size_t, std::size_t> rows[] = {{1, 2 * kMiB},
                                                      {kMiB - kGuard, 2 * kMiB},
                                                      {kMiB + 1, 20 * kMiB},
                                                      {10 * kMiB - kGuard - 256, 20 * kMiB},
                                                      {10 * kMiB - kGuard, 10 * kMiB},
                                                      {10 * kMiB + 1, 12 * kMiB},
                                                      {33 * kMiB, 34 * kMiB}};
  for (const auto& [bytes, segment] : rows) {
    INFO("a request for " << bytes << " bytes");
    empty_cache(cuda_device(0));
    const std::unique_ptr<Stream> side = backend(0).make_stream();  // its pool is empty
    const std::size_t before = held();
    const Held block(0, bytes, side.get());
    CHECK(held() == before + segment);
  }
}

TEST_CASE("allocator: blocks of different sizes share a segment", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const std::unique_ptr<Stream> side = backend(0).make_stream();
  const std::size_t before = held();
  const Held first(0, 9 * kMiB, side.get());
  const MemoryStats then = stats();
  {
    const Held second(0, 2 * kMiB, side.get()), third(0, 6 * kMiB, side.get());
    CHECK(held() == before + 20 * kMiB);
    CHECK(stats().hits == then.hits + 2);
  }
  const Held joined(0, 9 * kMiB, side.get());
  CHECK(held() == before + 20 * kMiB);
  const Held more(0, 9 * kMiB, side.get());  // only 2 MiB are left
  CHECK(held() == before + 40 * kMiB);
}

TEST_CASE("allocator: a capacity below the rule's segment makes a smaller one", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const std::unique_ptr<Stream> side = backend(0).make_stream();
  const std::size_t before = held();
  set_memory_capacity(cuda_device(0), before + 5 * kMiB + 100);
  const Held block(0, 3 * kMiB, side.get());
  CHECK(held() == before + 5 * kMiB);
  CHECK_NOTHROW(Held(0, kMiB + 1, side.get()));  // in what is left of the segment
  CHECK(held() == before + 5 * kMiB);
}

TEST_CASE("allocator: the same stream reuses a block at once; the peak", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  Held first(0, 4000);
  void* const data = first.data();
  first.release();
  const MemoryStats before = stats();
  CHECK(before.cached >= 4096);
  const Held again(0, 4096);
  CHECK(again.data() == data);
  CHECK(stats().hits == before.hits + 1);
  CHECK(stats().cached == before.cached - 4096 - kGuard);
  const std::size_t used = stats().in_use;
  reset_peak_memory(cuda_device(0));
  CHECK(stats().peak == used);
  { const Held more(0, kMiB); }
  CHECK(stats().peak == used + kMiB + kGuard);
  reset_peak_memory(cuda_device(0));
  CHECK(stats().peak == used);
}

TEST_CASE("allocator: a peak that is measured again does not empty the cache", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  { const Held a(0, 200 * kMiB), b(0, 100 * kMiB); }
  reset_peak_memory(cuda_device(0));
  const Held next(0, 210 * kMiB);  // no cached block is large enough
  CHECK(stats().cached >= 300 * kMiB);
}

TEST_CASE("allocator: what a stream freed outlives it, is cut and joined again", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  std::unique_ptr<Stream> side = backend(0).make_stream();
  Held block(0, 8 * kMiB, side.get());
  void* const data = block.data();
  block.release();
  side.reset();
  const std::size_t before = held();
  std::vector<std::unique_ptr<Held>> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(std::make_unique<Held>(0, 2 * kMiB - kKiB));
  CHECK(parts[0]->data() == data);
  const Held small(0, 1000);  // from a separate segment
  for (const std::size_t first : {0u, 2u, 3u, 1u}) parts[first]->release();
  const Held large(0, 8 * kMiB);
  CHECK(large.data() == data);
  CHECK(held() <= before + 2 * kMiB);
}

TEST_CASE("allocator: the capacity limits what is in use, and with the cache", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  set_memory_capacity(cuda_device(0), stats().in_use + 64 * kKiB);
  {
    Held a(0, 30 * kKiB), b(0, 30 * kKiB);
    const MemoryStats before = stats();
    CHECK_THROWS_TEXT(
        OutOfMemoryError,
        "cuda:0: allocate: expected 8192 free bytes, got *in use*capacity *over its capacity",
        Held(0, 8 * kKiB));
    CHECK(stats().failures == before.failures + 1);
    CHECK(stats().in_use == before.in_use);
    CHECK(stats().retries == before.retries + 1);
    b.release();
    const Held c(0, 16 * kKiB);
  }
  set_memory_capacity(cuda_device(0), 1);
  CHECK_THROWS_AS(Held(0, 1), OutOfMemoryError);
  set_memory_capacity(cuda_device(0), 0);
  CHECK_NOTHROW(Held(0, 1));
  empty_cache(cuda_device(0));
  const std::size_t capacity = held() + 24 * kMiB;
  set_memory_capacity(cuda_device(0), capacity);
  { const Held cached(0, 12 * kMiB); }  // a segment of at most 14 MiB
  const MemoryStats before = stats();
  CHECK(before.cached >= 12 * kMiB);
  {
    const Held larger(0, 18 * kMiB);  // fits only after the cache is emptied
    CHECK(stats().retries == before.retries + 1);
    CHECK(held() <= capacity);
  }
  CHECK(held() <= capacity);
  set_memory_capacity(cuda_device(0), capacity - 24 * kMiB + 1);  // 0 would mean no limit
  CHECK(held() <= capacity - 24 * kMiB + 1);
}

TEST_CASE("allocator: a request that no device has room for", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  { const Held cached(0, 4 * kMiB); }
  const MemoryStats before = stats();
  CHECK_THROWS_TEXT(OutOfMemoryError,
                    "cuda:0: allocate: expected *cudaMalloc: cudaErrorMemoryAllocation",
                    Held(0, std::size_t{1} << 46));
  CHECK_THROWS_TEXT(OutOfMemoryError, "no block is that large", Held(0, std::size_t{1} << 60));
  CHECK(stats().retries == before.retries + 1);
  CHECK(stats().cached + 20 * kMiB <= before.cached);  // freed before the second attempt
  CHECK(stats().in_use == before.in_use);
  // the device still works
  CHECK((ones({3}, {.device = cuda_device(0)}) + 1).sum().item<double>() == 6);
  // injected failures
  fail_allocation(cuda_device(0), 2);
  CHECK_NOTHROW(Held(0, 10));
  CHECK_THROWS_TEXT(OutOfMemoryError, "asked for by fail_allocation", Held(0, 10));
  CHECK_NOTHROW(Held(0, 10));
  fail_allocation(cuda_device(0), 1, true);
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(Held(0, 10), OutOfMemoryError);
  fail_allocation(cuda_device(0), 0);
  CHECK_NOTHROW(Held(0, 10));
}

TEST_CASE("allocator: a block is borrowed by another stream behind its work", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const std::unique_ptr<Stream> side = backend(0).make_stream();
  const std::unique_ptr<Event> used = backend(0).make_event();
  constexpr std::size_t kBytes = 5 * kMiB;
  Held block(0, kBytes);
  void* const data = block.data();
  const std::vector<unsigned char> ones(kBytes, 1), twos(kBytes, 2);
  set_memory_capacity(cuda_device(0), held());
  {
    Gate gate(backend(0).default_stream());
    block.release();
    Held borrowed(0, kBytes, side.get());
    CHECK(borrowed.data() == data);
    backend(0).copy({borrowed.data(), cuda_device(0), ones.data(), Device(), kKiB}, *side);
    side->record(*used);
    CHECK_FALSE(used->done());
    CHECK_FALSE(gate.late());
  }
  Held again(0, kBytes);
  CHECK(again.data() == data);
  // without a stream dependency on the copy on the side stream, this block could end up with ones
  copy_in(0, again.data(), twos.data(), kBytes);
  std::vector<unsigned char> seen(kBytes);
  copy_out(0, seen.data(), again.data(), kBytes);
  CHECK(seen == twos);
  CHECK(used->done());
}

TEST_CASE("allocator: threads with streams that come and go, short of memory", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const Device device = cuda_device(0);
  constexpr std::int64_t kNumbers = 40'000;
  // eight tensors at the same time, in segments of several streams
  set_memory_capacity(device, held() + 10 * kNumbers * sizeof(float));
  const MemoryStats before = stats();
  std::vector<std::string> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&wrong, t, device] {
      try {
        for (int i = 0; i < 12; ++i) {
          const std::shared_ptr<Stream> own = make_stream(device);
          const StreamGuard guard(own);
          const double value = static_cast<double>(100 * t) + i;
          const Tensor x = full({kNumbers}, value, {.device = device});
          if ((x + 1).to_vector<double>() != std::vector<double>(kNumbers, value + 1))
            wrong[t] += str("other numbers in round ", i, "; ");
        }
      } catch (const std::exception& e) {
        wrong[t] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<std::string>(4));
  CHECK(stats().in_use == before.in_use);
  CHECK(stats().allocations - before.allocations == 4 * 12 * 2);
  CHECK(stats().failures == before.failures);
}

TEST_CASE("allocator: a step that repeats asks the driver for nothing", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  using Blocks = std::vector<std::unique_ptr<Held>>;
  const auto hold = [](Blocks& blocks, std::size_t bytes) {
    blocks.push_back(std::make_unique<Held>(0, bytes));
  };
  constexpr std::size_t kLayers = 32;
  const auto width = [](std::size_t layer) { return (layer % 3 + 1) * 500 * kKiB + 12345 * layer; };
  Blocks weights, states;
  for (std::size_t l = 0; l < kLayers; ++l)
    hold(weights, 2 * width(l)), hold(weights, 4 * (300 + l));
  // the allocations of a training step, as a model and an optimizer make them
  const auto step = [&] {
    Blocks kept, gradients;
    for (std::size_t l = 0; l < kLayers; ++l) {
      hold(kept, 3 * width(l));  // an activation
      const Held workspace(0, width(l) / 2);
      hold(kept, 700 * l + 1);
    }
    auto incoming = std::make_unique<Held>(0, 3 * width(kLayers - 1));
    for (std::size_t l = kLayers; l-- > 0;) {
      hold(gradients, 2 * width(l)), hold(gradients, 4 * (300 + l));
      auto outgoing = std::make_unique<Held>(0, 3 * width(l == 0 ? 0 : l - 1));
      kept.resize(2 * l);
      incoming = std::move(outgoing);
    }
    if (states.empty())
      for (std::size_t l = 0; l < kLayers; ++l)
        hold(states, 2 * width(l)), hold(states, 4 * (300 + l));
  };
  for (int i = 0; i < 3; ++i) step();
  reset_peak_memory(cuda_device(0));
  const MemoryStats before = stats();
#if BRAID_CUDA_SIMT
  const std::uint64_t calls = simt::calls();
#endif
  for (int i = 0; i < 2; ++i) step();
#if BRAID_CUDA_SIMT
  CHECK(simt::calls("cudaMalloc") > 0);
  CHECK(simt::calls() == calls);
#endif
  CHECK(stats().allocations - before.allocations == stats().hits - before.hits);
  CHECK(held() == before.in_use + before.cached);
  const double ratio = static_cast<double>(held()) / static_cast<double>(stats().peak);
  std::cout << "SHOWS: a training step's allocations: " << (stats().peak >> 20)
            << " MiB at most, reserved / live " << ratio << '\n';
  CHECK(stats().peak > 256 * kMiB);
  CHECK(ratio <= 1.10);
}

#if BRAID_CUDA_SIMT

TEST_CASE("child: without a cache", "[.child][no_cache]") {
  const MemoryStats before = stats();
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t made = simt::calls("cudaMalloc"), freed = simt::calls("cudaFree");
    {
      const Held a(0, 1001), b(0, 5 * kMiB);
      CHECK(simt::calls("cudaMalloc") == made + 2);
      CHECK(stats().in_use == before.in_use + 1001 + 5 * kMiB);
    }
    CHECK(simt::calls("cudaFree") == freed + 2);
  }
  CHECK(stats().hits == 0);
  CHECK(held() == before.in_use);
  // The block ends exactly at its last byte.
  const Held block(0, 1001);
  const std::vector<char> numbers(1002, 1);
  CHECK_NOTHROW(copy_in(0, block.data(), numbers.data(), 1001));
  CHECK_THROWS_AS(copy_in(0, block.data(), numbers.data(), 1002), CudaError);
  CHECK(simt::last_report().find("out of bounds") != std::string::npos);
  // The device still works.
  const Device device = cuda_device(0);
  Tensor x = ones({100}, {.device = device});
  for (int i = 0; i < 5; ++i) x = x + x;
  CHECK(x.sum().item<double>() == 3200);
  set_memory_capacity(device, stats().in_use + 1000);
  CHECK_THROWS_TEXT(OutOfMemoryError, "over its capacity", Held(0, 1001));
  CHECK_NOTHROW(Held(0, 1000));
}
TEST_CASE("child: neither a cache nor none", "[.child][odd_cache]") {
  CHECK_THROWS_TEXT(DeviceError, "BRAID_CUDA_CACHE: expected a number from 0 to 1, got '",
                    device_count());
}

TEST_CASE("child: two logical devices of a small GPU", "[.child][siblings]") {
  { const Held a(0, 40 * kMiB); }
  CHECK(memory_stats(cuda_device(0)).cached >= 40 * kMiB);
  const Held b(1, 40 * kMiB);
  CHECK(memory_stats(cuda_device(0)).cached < 40 * kMiB);
  CHECK(memory_stats(cuda_device(1)).retries == 1);
  CHECK_THROWS_TEXT(OutOfMemoryError, "cuda:0: allocate: *cudaMalloc: cudaErrorMemoryAllocation",
                    Held(0, 40 * kMiB));
  set_memory_capacity(cuda_device(0), 10 * kMiB);  // the limit of this device, not of the GPU
  CHECK_THROWS_TEXT(OutOfMemoryError, "over its capacity", Held(0, 11 * kMiB));
  CHECK_NOTHROW(Held(1, 11 * kMiB));
  CHECK(memory_stats(cuda_device(0)).in_use == 0);
}

TEST_CASE("child: a GPU that has no room for the rule's segment", "[.child][little]") {
  // 9 MiB in all: 20 MiB fail, then each block gets a segment of its own size
  constexpr std::size_t kBlock = 4 * kMiB + kGuard;
  const Held a(0, 4 * kMiB);
  CHECK(held() == kBlock);
  CHECK(stats().retries == 1);
  {
    const Held b(0, 4 * kMiB);
    CHECK(held() == 2 * kBlock);
    CHECK(stats().retries == 2);
    CHECK_THROWS_TEXT(OutOfMemoryError, "cuda:0: allocate: *cudaMalloc: cudaErrorMemoryAllocation",
                      Held(0, 4 * kMiB));
    CHECK(stats().retries == 3);
  }
  const Held c(0, 4 * kMiB);  // from the cache
  CHECK(stats().hits == 1);
  CHECK(stats().retries == 3);
  CHECK(stats().failures == 1);
}

TEST_CASE("child: a block that is used after it was given back", "[.child][released]") {
  const std::vector<char> numbers(1000, 1);
  Held block(0, numbers.size());
  void* const gone = block.data();
  block.release();
  const auto use = [&] {
    copy_in(0, gone, numbers.data(), numbers.size());
    synchronize(cuda_device(0));
  };
  CHECK_THROWS_TEXT(DeviceLostError, "use after free", use());
}

TEST_CASE("child: a block that cannot be given back", "[.child][kept]") {
  constexpr std::size_t kKept = std::size_t{1} << 20;
  { const Held block(0, kKept); }
  synchronize(cuda_device(0));
  CHECK(stats().cached >= kKept);
  simt::fail_call(1, cudaErrorInvalidValue, true, "cudaEventSynchronize");
  empty_cache(cuda_device(0));
  simt::fail_call(0, cudaSuccess);
  CHECK(stats().cached >= kKept);  // the driver still holds the memory, so it counts
  CHECK(simt::live_objects().size() >= 1);
  empty_cache(cuda_device(0));
  CHECK(stats().cached >= kKept);  // permanently: it is unknown whether the memory is still in use
  set_memory_capacity(cuda_device(0), kKept);
  CHECK_THROWS_TEXT(OutOfMemoryError, "over its capacity", Held(0, 1024));
  set_memory_capacity(cuda_device(0), 0);
  CHECK_NOTHROW(Held(0, kKept));
  CHECK(simt::take_reports().empty());
}

#endif

TEST_CASE("allocator: many threads at once", "[allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const MemoryStats before = stats();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (std::size_t i = 0; i < 200; ++i) {
        Held a(0, 300 + 100 * (i % 7)), b(0, 5000 * (t + 1));
        a.release();
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(stats().in_use == before.in_use);
  CHECK(stats().allocations == before.allocations + 1600);
  CHECK(stats().releases == before.releases + 1600);
  CHECK(stats().hits > before.hits + 1500);
}
