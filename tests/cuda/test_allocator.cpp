// The stream-ordered caching allocator, through the seam.
#include <algorithm>
#include <thread>

#include "cuda_support.hpp"
#if BRAID_CUDA_SIMT
#include "simt/runtime/control.hpp"
#include "support/child.hpp"
#endif

using namespace braid;
using namespace braid::test;

namespace {

MemoryStats stats() { return memory_stats(cuda_device(0)); }

/// The device as the test needs it, and as it was afterwards.
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

TEST_CASE("allocator: blocks are aligned, apart, and counted by size class", "[cuda][allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const MemoryStats before = stats();
  {
    std::vector<std::unique_ptr<Held>> blocks;
    std::size_t counted = 0;
    const std::pair<std::size_t, std::size_t> sizes[] = {
        {1, 256}, {256, 256}, {257, 512}, {1024, 1024}, {1025, 1280}, {5000, 5120}, {65536, 65536}, {(1 << 20) + 1, 1310720}, {3 << 20, 3 << 20}};
    for (const auto& [bytes, size] : sizes) {
      blocks.push_back(std::make_unique<Held>(0, bytes));
      CHECK(reinterpret_cast<std::uintptr_t>(blocks.back()->data()) % 256 == 0);
      counted += size;
      CHECK(stats().in_use == before.in_use + counted);
    }
    std::vector<char*> at;
    for (const auto& block : blocks) at.push_back(static_cast<char*>(block->data()));
    std::sort(at.begin(), at.end());
    CHECK(std::adjacent_find(at.begin(), at.end()) == at.end());
    CHECK(stats().allocations == before.allocations + std::size(sizes));
  }
  CHECK(stats().in_use == before.in_use);
  CHECK(stats().releases == before.releases + 9);
  empty_cache(cuda_device(0));
  CHECK(stats().cached == 0);
}

TEST_CASE("allocator: the same stream reuses a block at once", "[cuda][allocator]") {
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
  CHECK(stats().cached == before.cached - 4096);
}

TEST_CASE("allocator: another stream gets the block only behind its work", "[cuda][allocator][streams]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  constexpr std::size_t kBytes = 1 << 20;
  const std::vector<unsigned char> ones(kBytes, 1), twos(kBytes, 2);
  const std::unique_ptr<Stream> side = backend(0).make_stream();
  for (int round = 0; round < 4; ++round) {
    Held kept(0, kBytes);
    Held block(0, kBytes);
    set_memory_capacity(cuda_device(0), stats().in_use);  // else it would rather have memory of its own
    copy_in(0, block.data(), ones.data(), kBytes);
    backend(0).copy({kept.data(), cuda_device(0), block.data(), cuda_device(0), kBytes}, backend(0).default_stream());
    void* const data = block.data();
    block.release();
    Held reused(0, kBytes, side.get());
    CHECK(reused.data() == data);
    // Were this not behind the copy above, `kept` could get twos.
    backend(0).copy({reused.data(), cuda_device(0), twos.data(), Device(), kBytes}, *side);
    std::vector<unsigned char> seen(kBytes);
    copy_out(0, seen.data(), kept.data(), kBytes);
    CHECK(seen == ones);
    side->synchronize();
    set_memory_capacity(cuda_device(0), 0);
  }
}

TEST_CASE("allocator: what a stream freed outlives it", "[cuda][allocator][streams]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  std::unique_ptr<Stream> side = backend(0).make_stream();
  Held block(0, 7000, side.get());
  void* const data = block.data();
  block.release();
  side.reset();
  const Held again(0, 7000);
  CHECK(again.data() == data);
}

TEST_CASE("allocator: the capacity limits in use and cached together", "[cuda][allocator][errors]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const std::size_t used = stats().in_use;
  set_memory_capacity(cuda_device(0), used + 64 * 1024);
  {
    Held a(0, 32 * 1024);
    Held b(0, 32 * 1024);
    const MemoryStats before = stats();
    CHECK_THROWS_TEXT(OutOfMemoryError, "cuda:0: allocate: expected 100 free bytes, got *in use*capacity *over its capacity", Held(0, 100));
    CHECK(stats().failures == before.failures + 1);
    CHECK(stats().in_use == before.in_use);
    CHECK(stats().retries == before.retries + 1);
    b.release();
    const Held c(0, 16 * 1024);  // another class: the cache is given back first
    CHECK(stats().retries == before.retries + 2);
    CHECK(stats().cached == 0);
  }
  set_memory_capacity(cuda_device(0), 1);
  CHECK(stats().cached == 0);
  CHECK_THROWS_AS(Held(0, 1), OutOfMemoryError);
  set_memory_capacity(cuda_device(0), 0);
  CHECK_NOTHROW(Held(0, 1));
}

TEST_CASE("allocator: a request that no device has room for", "[cuda][allocator][errors]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  { const Held cached(0, 1 << 16); }
  const MemoryStats before = stats();
  CHECK_THROWS_TEXT(OutOfMemoryError, "cuda:0: allocate: expected *cudaMalloc: cudaErrorMemoryAllocation", Held(0, std::size_t{1} << 46));
  CHECK_THROWS_TEXT(OutOfMemoryError, "no block is that large", Held(0, std::size_t{1} << 60));
  CHECK(stats().retries == before.retries + 1);
  CHECK(stats().cached == 0);  // given back before the second try
  CHECK(stats().in_use == before.in_use);
  CHECK((ones({3}, {.device = cuda_device(0)}) + 1).sum().item<double>() == 6);  // the device works on
}

TEST_CASE("allocator: failures on demand", "[cuda][allocator][errors]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  fail_allocation(cuda_device(0), 2);
  CHECK_NOTHROW(Held(0, 10));
  CHECK_THROWS_TEXT(OutOfMemoryError, "asked for by fail_allocation", Held(0, 10));
  CHECK_NOTHROW(Held(0, 10));
  fail_allocation(cuda_device(0), 1, true);
  CHECK_THROWS_AS(Held(0, 10), OutOfMemoryError);
  CHECK_THROWS_AS(Held(0, 10), OutOfMemoryError);
  fail_allocation(cuda_device(0), 0);
  CHECK_NOTHROW(Held(0, 10));
}

#if BRAID_CUDA_SIMT

TEST_CASE("child: a block that cannot be given back", "[.child][kept]") {
  constexpr std::size_t kKept = std::size_t{1} << 20;
  { const Held block(0, kKept); }
  synchronize(cuda_device(0));
  CHECK(stats().cached >= kKept);
  simt::fail_call(1, cudaErrorInvalidValue, true, "cudaStreamSynchronize");
  empty_cache(cuda_device(0));
  simt::fail_call(0, cudaSuccess);
  CHECK(stats().cached >= kKept);  // the driver has it, so it counts
  CHECK(simt::live_objects().size() >= 1);
  empty_cache(cuda_device(0));
  CHECK(stats().cached >= kKept);  // for good: nobody knows whether it is still in use
  set_memory_capacity(cuda_device(0), kKept);
  CHECK_THROWS_TEXT(OutOfMemoryError, "over its capacity", Held(0, 1024));
  set_memory_capacity(cuda_device(0), 0);
  CHECK_NOTHROW(Held(0, kKept));
  CHECK(simt::take_reports().empty());
}

TEST_CASE("allocator: a block that the driver keeps stays counted", "[cuda][allocator][injection][process]") {
  CHECK_CHILD("BRAID_SIMT_DEVICES=1", "[.child][kept]");
}

#endif

TEST_CASE("allocator: peak", "[cuda][allocator]") {
  NEEDS_DEVICES(1);
  const Clean clean;
  const std::size_t used = stats().in_use;
  reset_peak_memory(cuda_device(0));
  CHECK(stats().peak == used);
  { const Held a(0, 1 << 20); }
  CHECK(stats().peak == used + (1 << 20));
  reset_peak_memory(cuda_device(0));
  CHECK(stats().peak == used);
}

TEST_CASE("allocator: many threads at once", "[cuda][allocator]") {
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
