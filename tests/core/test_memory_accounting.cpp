// Tests of the policy of memory that all allocators share, without an allocator. Variants with one
// injected fault each show that the test detects it.
#include <thread>

#include <braid/core/internal/caching_allocator.hpp>
#include <braid/core/internal/memory_accounting.hpp>

#include "shorthand.hpp"

namespace braid::test {
namespace {

const Device kDevice(DeviceType::cpu, 3);
constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Runs a fixed sequence of operations. Returns the first value that is not the expected one, as
/// `name: expected …, got …`, or an empty string.
template <class Accounting> std::string first_difference() {
  Accounting a(kDevice);
  std::string wrong;
  const auto expect = [&](const char* what, auto got, std::uint64_t expected) {
    if (wrong.empty() && static_cast<std::uint64_t>(got) != expected)
      wrong = str(what, ": expected ", expected, ", got ", got);
  };
  const auto expect_bytes = [&](std::size_t in_use, std::size_t cached, std::size_t peak) {
    expect("in_use", a.stats().in_use, in_use);
    expect("cached", a.stats().cached, cached);
    expect("peak", a.stats().peak, peak);
  };
  const auto take = [&](std::size_t bytes, bool hit) {
    if (!hit) a.reserve(bytes);
    a.count_allocation(hit);
    a.hand_out(bytes);
  };
  const auto give = [&](std::size_t bytes) {
    a.take_back(bytes);
    a.count_release();
  };
  // bytes and counts
  take(100, false), take(50, false);
  expect_bytes(150, 0, 150);
  give(100);
  expect_bytes(50, 100, 150);
  take(100, true), give(50);
  a.reset_peak();
  expect_bytes(100, 50, 100);
  take(50, true);
  expect_bytes(150, 0, 150);
  a.count_retry();
  expect("allocations", a.stats().allocations, 4);
  expect("hits", a.stats().hits, 2);
  expect("releases", a.stats().releases, 2);
  expect("retries", a.stats().retries, 1);
  // the capacity
  expect("room", a.room(), SIZE_MAX);
  expect("fits", a.fits(SIZE_MAX), true);
  a.set_capacity(200);
  expect("room", a.room(), 50);
  expect("fits", a.fits(50), true);
  expect("fits", a.fits(51), false);
  give(50);
  expect("room", a.room(), 50);
  expect("fits", a.fits(100), true);
  expect("fits", a.fits(101), false);
  expect("fits", a.fits(SIZE_MAX), false);
  expect("over_capacity", a.over_capacity(), false);
  a.reserve(51);
  expect("over_capacity", a.over_capacity(), true);
  expect("unrestricted", a.unrestricted(), false);
  expect("room", a.room(), 0);
  a.unreserve(51);
  expect("over_capacity", a.over_capacity(), false);
  a.set_capacity(149);
  expect("over_capacity", a.over_capacity(), true);
  a.set_capacity(200);
  a.keep(50);  // the cached ones
  expect("fits", a.fits(50), true);
  expect("fits", a.fits(51), false);
  expect_bytes(100, 50, 150);
  a.set_capacity(0);
  expect("unrestricted", a.unrestricted(), true);
  // stale memory: more than 2 * (300 MiB + 100) + 256 MiB
  take(300 * kMiB, false), give(300 * kMiB);
  const std::size_t limit = 2 * (300 * kMiB + 100) + 256 * kMiB, more = limit - 300 * kMiB - 150;
  for (int i = 0; i < 2; ++i) {
    expect("stale", a.stale(more), false);
    expect("stale", a.stale(more + 1), true);
    a.reset_peak();
  }
  expect_bytes(100, 300 * kMiB + 50, 100);
  a.set_capacity(1);
  expect("stale", a.stale(more + 1), false);
  a.set_capacity(0);
  a.hand_out(300 * kMiB + 50);  // nothing is cached
  expect("stale", a.stale(1000 * kMiB), false);
  // injected failures
  a.fail_allocation(2, false);
  expect("unrestricted", a.unrestricted(), false);
  for (const bool fails : {false, true, false, false})
    expect("injected_failure", a.injected_failure() != nullptr, fails);
  expect("unrestricted", a.unrestricted(), true);
  a.fail_allocation(2, true);
  for (const bool fails : {false, true, true})
    expect("injected_failure", a.injected_failure() != nullptr, fails);
  a.fail_allocation(0, false);
  expect("injected_failure", a.injected_failure() != nullptr, false);
  return wrong;
}

struct PeakNotUpdated : MemoryAccounting {
  using MemoryAccounting::MemoryAccounting;
  [[nodiscard]] MemoryStats stats() const {
    MemoryStats stats = MemoryAccounting::stats();
    stats.peak = stats.in_use;
    return stats;
  }
};
struct PeakNotReset : MemoryAccounting {
  using MemoryAccounting::MemoryAccounting;
  void reset_peak() {}
};
struct NothingTakenBack : MemoryAccounting {
  using MemoryAccounting::MemoryAccounting;
  void take_back(std::size_t) {}
};
struct HitsNotCounted : MemoryAccounting {
  using MemoryAccounting::MemoryAccounting;
  void count_allocation(bool) { MemoryAccounting::count_allocation(false); }
};
struct NothingKept : MemoryAccounting {
  using MemoryAccounting::MemoryAccounting;
  void keep(std::size_t) {}
};
struct RoomOfInUse : MemoryAccounting {
  using MemoryAccounting::MemoryAccounting;
  [[nodiscard]] std::size_t room() const {
    return capacity() == 0 ? SIZE_MAX : capacity() - stats().in_use;
  }
};
/// The limit of stale memory follows the measured peak.
struct StaleByPeak : MemoryAccounting {
  using MemoryAccounting::MemoryAccounting;
  [[nodiscard]] bool stale(std::size_t bytes) const {
    return capacity() == 0 && reserved() > stats().in_use &&
           reserved() + bytes > 2 * stats().peak + 256 * kMiB;
  }
};
struct FailsTooLate : MemoryAccounting {
  using MemoryAccounting::MemoryAccounting;
  void fail_allocation(std::uint64_t k, bool persistent) {
    MemoryAccounting::fail_allocation(k == 0 ? 0 : k + 1, persistent);
  }
};

}  // namespace

TEST_CASE("accounting: a known sequence, and the faults that it detects", "[core][memory]") {
  CHECK(first_difference<MemoryAccounting>() == "");
  CHECK(first_difference<PeakNotUpdated>() == "peak: expected 150, got 50");
  CHECK(first_difference<PeakNotReset>() == "peak: expected 100, got 150");
  CHECK(first_difference<NothingTakenBack>() == "in_use: expected 50, got 150");
  CHECK(first_difference<HitsNotCounted>() == "hits: expected 2, got 0");
  CHECK(first_difference<NothingKept>() == "fits: expected 0, got 1");
  CHECK(first_difference<RoomOfInUse>() == "room: expected 50, got 100");
  CHECK(first_difference<StaleByPeak>() == "stale: expected 0, got 1");
  CHECK(first_difference<FailsTooLate>() == "injected_failure: expected 1, got 0");
}

TEST_CASE("accounting: the error says what there was, and is counted", "[core][memory][errors]") {
  MemoryAccounting a(kDevice);
  a.reserve(3000);
  a.hand_out(1000);
  a.set_capacity(4000);
  try {
    a.refuse(2500, "over its capacity");
    FAIL("nothing was thrown");
  } catch (const OutOfMemoryError& e) {
    CHECK(e.device == kDevice);
    CHECK(e.requested == 2500);
    CHECK(e.in_use == 1000);
    CHECK(e.cached == 2000);
    CHECK(e.capacity == 4000);
    CHECK(matches(e.what(), "cpu:3: allocate: expected 2500 free bytes, got *over its capacity"));
  }
  CHECK(a.stats().failures == 1);
}

TEST_CASE("accounting: a peak that is measured again does not empty the CPU's cache",
          "[core][memory]") {
  CachingAllocator allocator(kDevice, host_memory_source());
  std::size_t cached = 0;
  for (const std::size_t bytes : {200 * kMiB, 300 * kMiB}) {  // untouched pages cost no memory
    allocator.release(allocator.allocate(bytes));
    allocator.reset_peak();
    cached += CachingAllocator::block_bytes(bytes);
    CHECK(allocator.stats().cached == cached);
  }
  CHECK(allocator.stats().retries == 0);
}

TEST_CASE("accounting: no thread's block is missed in the peak", "[core][memory][stress]") {
  MemoryAccounting a(kDevice);
  constexpr std::size_t kThreads = 4, kBlocks = 10'000, kBytes = 64;
  const auto run = [&](auto&& job) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (std::size_t i = 0; i < kBlocks; ++i) job();
      });
    for (std::thread& thread : threads) thread.join();
  };
  run([&] { a.hand_out(kBytes); });
  CHECK(a.stats().in_use == kThreads * kBlocks * kBytes);
  CHECK(a.stats().peak == kThreads * kBlocks * kBytes);
  run([&] { a.take_back(kBytes); });
  CHECK(a.stats().in_use == 0);
  CHECK(a.stats().peak == kThreads * kBlocks * kBytes);
}

}  // namespace braid::test
