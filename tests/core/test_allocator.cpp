#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include <braid/core/internal/caching_allocator.hpp>
#include <braid/core/ref.hpp>

#include "memory/sanitizers.hpp"
#include "shorthand.hpp"

namespace braid::test {
namespace {

// A source that counts the bytes it has allocated and that can run out of memory.
std::atomic<std::size_t> source_bytes{0};
std::atomic<std::size_t> source_limit{SIZE_MAX};
std::atomic<int> source_calls{0};

MemorySource counting_source() {
  source_bytes = 0;
  source_limit = SIZE_MAX;
  source_calls = 0;
  return {[](std::size_t bytes) noexcept -> void* {
            ++source_calls;
            if (source_bytes.fetch_add(bytes) + bytes > source_limit) {
              source_bytes -= bytes;
              return nullptr;
            }
            return host_memory_source().allocate(bytes);
          },
          [](void* data, std::size_t bytes) noexcept {
            source_bytes -= bytes;
            host_memory_source().release(data, bytes);
          },
          true};
}

const Device kDevice(DeviceType::cpu, 3);
const std::size_t kMiB = std::size_t{1} << 20;

/// An allocator on a source with new counters.
struct Counted : CachingAllocator {
  Counted() : CachingAllocator(kDevice, counting_source()) {}
  void pass(std::size_t bytes) { release(allocate(bytes)); }
};

/// Another thread. It allocates and releases a block, and does so again in go_on() if `twice`.
class Other {
 public:
  Other(CachingAllocator& allocator, std::size_t bytes, bool twice = false)
      : thread_([&allocator, bytes, twice, this] {
          allocator.release(allocator.allocate(bytes));
          stage_ = 1;
          while (stage_ != 2) std::this_thread::yield();
          if (twice) allocator.release(allocator.allocate(bytes));
        }) {
    while (stage_ != 1) std::this_thread::yield();
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() { go_on(); }
  void go_on() {
    stage_ = 2;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<int> stage_{0};
  std::thread thread_;
};

/// Runs job(t) on each of `count` threads.
void run_threads(int count, const std::function<void(std::size_t)>& job) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(job, static_cast<std::size_t>(t));
  for (std::thread& thread : threads) thread.join();
}

void check_consistent(const CachingAllocator& allocator) {
  const MemoryStats stats = allocator.stats();
  CHECK(stats.in_use + stats.cached == source_bytes);
  CHECK(stats.peak >= stats.in_use);
  CHECK(stats.hits <= stats.allocations);
  if (stats.capacity != 0 && stats.in_use <= stats.capacity)
    CHECK(stats.in_use + stats.cached <= stats.capacity);
}

}  // namespace

TEST_CASE("allocator: size classes", "[core][memory]") {
  std::size_t before = 0;
  std::set<std::size_t> classes;
  for (std::size_t bytes = 1; bytes <= 70000; ++bytes) {
    const std::size_t block = CachingAllocator::block_bytes(bytes);
    REQUIRE(block >= bytes);
    REQUIRE(block % 64 == 0);
    REQUIRE(block >= before);
    REQUIRE(block <= (bytes <= 1024 ? bytes + 63 : bytes + bytes / 4));
    before = block;
    classes.insert(block);
  }
  for (std::size_t size : classes) CHECK(CachingAllocator::block_bytes(size) == size);
  std::size_t doubling = 0;
  for (std::size_t size : classes) doubling += size > 4096 && size <= 8192;
  CHECK(doubling == 4);
  CHECK(CachingAllocator::block_bytes(std::size_t{1} << 48) == std::size_t{1} << 48);
  CHECK(CachingAllocator::block_bytes((std::size_t{1} << 48) + 1) == 0);
  CHECK(CachingAllocator::block_bytes(SIZE_MAX) == 0);
}

TEST_CASE("allocator: memory is aligned, distinct and reused", "[core][memory]") {
  Counted allocator;
  std::vector<Block> blocks;
  for (std::size_t bytes :
       {1u, 63u, 64u, 65u, 1000u, 1025u, 100000u, 4u << 20, (4u << 20) + 1, 9u << 20}) {
    blocks.push_back(allocator.allocate(bytes));
    const auto address = reinterpret_cast<std::uintptr_t>(blocks.back().data);
    CHECK(address % 64 == 0);
    if (bytes >= 4u << 20) CHECK(address % (2u << 20) == 0);
    CHECK(blocks.back().bytes == bytes);
    std::memset(blocks.back().data, static_cast<int>(blocks.size()), bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[i].data);
    for (std::size_t at : {std::size_t{0}, blocks[i].bytes / 2, blocks[i].bytes - 1})
      CHECK(bytes[at] == i + 1);
  }
  check_consistent(allocator);
  std::set<void*> first;
  for (const Block& block : blocks) {
    first.insert(block.data);
    allocator.release(block);
  }
  CHECK(allocator.stats().in_use == 0);
  check_consistent(allocator);
  const int calls = source_calls;
  for (Block& block : blocks) {
    block = allocator.allocate(block.bytes);
    CHECK(first.count(block.data) == 1);
  }
  CHECK(source_calls == calls);
  CHECK(allocator.stats().hits == blocks.size());
  for (const Block& block : blocks) allocator.release(block);
  allocator.empty_cache();
  CHECK(source_bytes == 0);
  CHECK(allocator.stats().cached == 0);
}

#if BRAID_ASAN
TEST_CASE("allocator: AddressSanitizer sees free blocks and the room behind a request",
          "[core][memory]") {
  Counted allocator;
  const Block block = allocator.allocate(100);  // rounded up to 128
  auto* const data = static_cast<char*>(block.data);
  CHECK_FALSE((__asan_address_is_poisoned(data) || __asan_address_is_poisoned(data + 99)));
  CHECK(__asan_address_is_poisoned(data + 100));
  allocator.release(block);
  CHECK(__asan_address_is_poisoned(data));
  const Block again = allocator.allocate(128);
  CHECK(again.data == block.data);
  CHECK_FALSE(__asan_address_is_poisoned(data + 127));
  allocator.release(again);
}
#endif

TEST_CASE("allocator: exact accounting of a known sequence", "[core][memory]") {
  Counted allocator;
  const auto is = [&](std::size_t in_use, std::size_t cached, std::size_t peak) {
    const MemoryStats stats = allocator.stats();
    CHECK(stats.in_use == in_use);
    CHECK(stats.cached == cached);
    CHECK(stats.peak == peak);
    return stats;
  };
  const Block a = allocator.allocate(100);   // 128
  const Block b = allocator.allocate(1000);  // 1024
  MemoryStats stats = is(1152, 0, 1152);
  CHECK(stats.capacity == 0);
  CHECK(stats.allocations == 2);
  CHECK(stats.hits == 0);
  allocator.release(b);
  CHECK(is(128, 1024, 1152).releases == 1);
  allocator.reset_peak();
  is(128, 1024, 128);
  const Block c = allocator.allocate(961);  // b's size class
  CHECK(c.data == b.data);
  CHECK(is(1152, 0, 1152).hits == 1);
  allocator.release(a);
  allocator.release(c);
  stats = is(0, 1152, 1152);
  CHECK(stats.allocations == 3);
  CHECK(stats.releases == 3);
  CHECK(stats.retries == 0);
  CHECK(stats.failures == 0);
}

TEST_CASE("allocator: every k of the failing call", "[core][memory]") {
  constexpr std::uint64_t kCalls = 20;
  for (bool warm : {false, true})
    for (std::uint64_t k = 1; k <= kCalls; ++k) {
      Counted allocator;
      if (warm) allocator.pass(100);
      allocator.fail_allocation(k, false);
      std::uint64_t failed_at = 0;
      int failures = 0;
      for (std::uint64_t call = 1; call <= kCalls; ++call) {
        try {
          allocator.pass(100);
        } catch (const OutOfMemoryError& error) {
          ++failures;
          failed_at = call;
          CHECK(error.device == kDevice);
          CHECK(error.requested == 100);
          CHECK(error.in_use == 0);
          CHECK((error.retryable() && matches(error.what(), "fail_allocation")));
        }
      }
      CHECK(failures == 1);
      CHECK(failed_at == k);
      CHECK(allocator.stats().failures == 1);
      CHECK(allocator.stats().allocations == kCalls - 1 + (warm ? 1 : 0));
      check_consistent(allocator);

      allocator.fail_allocation(k, true);
      for (std::uint64_t call = 1; call <= kCalls; ++call) {
        if (call < k) allocator.pass(100);
        else CHECK_THROWS_AS((void)allocator.allocate(100), OutOfMemoryError);
      }
      allocator.fail_allocation(0, false);
      allocator.pass(100);
    }
}

TEST_CASE("allocator: a capacity swept from nothing to enough", "[core][memory]") {
  const std::vector<std::size_t> wanted{64, 640, 6400, 64000, 640, 64, 100, 12000};
  std::size_t need = 0;
  for (std::size_t bytes : wanted) need += CachingAllocator::block_bytes(bytes);
  for (std::size_t percent = 1; percent <= 100; ++percent) {
    Counted allocator;
    const std::size_t capacity = need * percent / 100;
    allocator.set_capacity(capacity);
    std::vector<Block> blocks;
    std::size_t held = 0;
    for (std::size_t bytes : wanted) {
      const std::size_t size = CachingAllocator::block_bytes(bytes);
      const bool fits = held + size <= capacity;
      try {
        blocks.push_back(allocator.allocate(bytes));
        held += size;
        CHECK(fits);
      } catch (const OutOfMemoryError& error) {
        CHECK_FALSE(fits);
        CHECK(error.capacity == capacity);
        CHECK(error.in_use == held);
        CHECK(error.requested == bytes);
      }
      CHECK(source_bytes <= capacity);
    }
    CHECK(allocator.stats().failures == wanted.size() - blocks.size());
    check_consistent(allocator);
    for (const Block& block : blocks) allocator.release(block);
    CHECK(allocator.stats().in_use == 0);
    if (percent == 100) CHECK(blocks.size() == wanted.size());
  }
}

TEST_CASE("allocator: at capacity the cache is freed once, then the request is served",
          "[core][memory]") {
  Counted allocator;
  allocator.set_capacity(10000);
  std::vector<Block> small;
  for (int i = 0; i < 100; ++i) small.push_back(allocator.allocate(64));
  for (const Block& block : small) allocator.release(block);  // more than a magazine holds
  CHECK(allocator.stats().cached == 6400);
  const Block big = allocator.allocate(8192);
  const MemoryStats stats = allocator.stats();
  CHECK(stats.retries == 1);
  CHECK(stats.failures == 0);
  CHECK(stats.in_use == 8192);
  CHECK(stats.cached == 0);
  CHECK(source_bytes == 8192);
  allocator.release(big);
}

TEST_CASE("allocator: a capacity below what is in use", "[core][memory]") {
  Counted allocator;
  Block a = allocator.allocate(1024), b = allocator.allocate(1024), c = allocator.allocate(1024);
  allocator.release(c);
  allocator.set_capacity(1500);
  CHECK(allocator.stats().cached == 0);
  CHECK(source_bytes == 2048);
  CHECK_THROWS_AS((void)allocator.allocate(64), OutOfMemoryError);
  allocator.release(a);  // freed: in use and cached memory would exceed the capacity
  CHECK(source_bytes == 1024);
  c = allocator.allocate(64);
  CHECK_THROWS_AS((void)allocator.allocate(1024), OutOfMemoryError);
  allocator.release(b);
  b = allocator.allocate(1024);
  allocator.set_capacity(0);
  a = allocator.allocate(1 << 20);
  for (const Block& block : {a, b, c}) allocator.release(block);
  check_consistent(allocator);
}

TEST_CASE("allocator: a request that no machine can serve", "[core][memory]") {
  Counted allocator;
  CHECK_THROWS_AS((void)allocator.allocate(SIZE_MAX), OutOfMemoryError);
  CHECK_THROWS_AS((void)allocator.allocate(std::size_t{1} << 60), OutOfMemoryError);
  CHECK(allocator.stats().failures == 2);
  CHECK(allocator.stats().in_use == 0);
}

TEST_CASE("allocator: when the system has no more, the cache is freed and asked again",
          "[core][memory]") {
  Counted allocator;
  allocator.pass(8192);
  source_limit = 10000;
  const Block block = allocator.allocate(4096);  // does not fit unless the cached 8192 are freed
  CHECK(allocator.stats().retries == 1);
  CHECK(source_bytes == 4096);
  CHECK_THROWS_AS((void)allocator.allocate(8192), OutOfMemoryError);
  CHECK(allocator.stats().failures == 1);
  check_consistent(allocator);
  allocator.release(block);
}

TEST_CASE("allocator: without a capacity the cache of dead sizes stays bounded", "[core][memory]") {
  Counted allocator;
  std::size_t most = 0;
  // a new size class each time; untouched pages cost no memory
  for (std::size_t i = 0; i < 60; ++i) {
    allocator.pass((16 + 2 * i) * kMiB);
    most = std::max<std::size_t>(most, source_bytes);
  }
  CHECK(most <= 2 * allocator.stats().peak + 256 * kMiB);
  CHECK(allocator.stats().retries > 0);
}

TEST_CASE("allocator: empty_cache takes the blocks of other threads' caches", "[core][memory]") {
  Counted allocator;
  Other other(allocator, 5000, true);
  CHECK(allocator.stats().cached == CachingAllocator::block_bytes(5000));
  allocator.empty_cache();
  CHECK(allocator.stats().cached == 0);
  CHECK(source_bytes == 0);
  other.go_on();
  check_consistent(allocator);
}

TEST_CASE("allocator: at capacity another thread's cached block is found", "[core][memory]") {
  Counted allocator;
  allocator.set_capacity(6000);
  const Other other(allocator, 5000);
  allocator.pass(5000);
  CHECK(allocator.stats().hits == 1);
  CHECK(source_calls == 1);
}

TEST_CASE("allocator: a thread's end gives its cache back", "[core][memory]") {
  Counted allocator;
  for (int i = 0; i < 20; ++i) std::thread([&] { allocator.pass(700); }).join();
  const MemoryStats stats = allocator.stats();
  // each thread reuses the block of the previous one
  CHECK(stats.cached == CachingAllocator::block_bytes(700));
  CHECK(stats.allocations == 20);
  CHECK(stats.hits == 19);
  CHECK(stats.releases == 20);
}

TEST_CASE("allocator: a thread outlives the allocator it used", "[core][memory]") {
  auto allocator = std::make_unique<Counted>();
  const Other other(*allocator, 700);
  allocator.reset();
  CHECK(source_bytes == 0);
}

TEST_CASE("allocator: many threads, blocks freed by others, flushes between",
          "[core][memory][stress]") {
  Counted allocator;
  allocator.set_capacity(std::size_t{64} << 20);
  constexpr int kThreads = 4, kSteps = 4000, kSlots = 64;
  // Threads exchange blocks through shared slots, so most blocks are released by another thread
  // than the one that allocated them.
  std::atomic<Block*> slots[kSlots] = {};
  std::atomic<std::uint64_t> taken{0}, failed{0};
  run_threads(kThreads, [&](std::size_t t) {
    std::mt19937 random(static_cast<unsigned>(t));
    for (int step = 0; step < kSteps; ++step) {
      Block* mine = nullptr;
      try {
        const std::size_t bytes = 1 + random() % (random() % 50 == 0 ? 6u << 20 : 5000u);
        mine = new Block(allocator.allocate(bytes));
        static_cast<char*>(mine->data)[0] = static_cast<char>(step);
        static_cast<char*>(mine->data)[bytes - 1] = static_cast<char>(step);
        ++taken;
      } catch (const OutOfMemoryError&) {
        ++failed;
      }
      if (Block* other = slots[random() % kSlots].exchange(mine)) {
        static_cast<char*>(other->data)[other->bytes - 1] = 1;
        allocator.release(*other);
        delete other;
      }
      if (random() % 500 == 0) allocator.empty_cache();
      if (random() % 1000 == 0) (void)allocator.stats();
    }
  });
  std::size_t held = 0;
  std::uint64_t left = 0;
  for (auto& slot : slots)
    if (Block* block = slot) held += CachingAllocator::block_bytes(block->bytes), ++left;
  MemoryStats stats = allocator.stats();
  CHECK(stats.in_use == held);
  CHECK(stats.allocations == taken);
  CHECK(stats.failures == failed);
  CHECK(stats.releases == taken - left);
  check_consistent(allocator);
  for (auto& slot : slots)
    if (Block* block = slot) {
      allocator.release(*block);
      delete block;
    }
  stats = allocator.stats();
  CHECK(stats.in_use == 0);
  CHECK(stats.allocations == stats.releases);
  allocator.empty_cache();
  CHECK(source_bytes == 0);
}

TEST_CASE("host pool: objects keep their bytes, also when another thread frees them",
          "[core][memory][stress]") {
  constexpr int kThreads = 4, kObjects = 3000;
  struct Object {
    unsigned char* data;
    std::size_t bytes;
    unsigned char value;
  };
  std::vector<std::vector<Object>> made(kThreads);
  for (int round = 0; round < 3; ++round) {
    run_threads(kThreads, [&](std::size_t t) {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kObjects; ++i) {
        const std::size_t bytes = 1 + random() % 1100;
        auto* data = static_cast<unsigned char*>(pool_allocate(bytes));
        const auto value = static_cast<unsigned char>(random());
        std::memset(data, value, bytes);
        made[t].push_back({data, bytes, value});
      }
    });
    std::atomic<int> wrong{0};
    run_threads(kThreads, [&](std::size_t t) {
      for (const Object& object : made[(t + 1) % kThreads]) {
        for (std::size_t i = 0; i < object.bytes; ++i) wrong += object.data[i] != object.value;
        pool_release(object.data, object.bytes);
      }
    });
    CHECK(wrong == 0);
    for (auto& objects : made) objects.clear();
  }
}

namespace {

// Outlives its thread's pool if it is constructed before the thread first uses the pool.
std::atomic<int> late_runs{0};
struct LateUser {
  void* held = nullptr;
  ~LateUser() {
    ++late_runs;
    void* more = pool_allocate(200);
    std::memset(more, 1, 200);
    pool_release(more, 200);
    if (held) pool_release(held, 100);
  }
};
thread_local LateUser t_late;

}  // namespace

TEST_CASE("host pool: works after the thread's cache is gone", "[core][memory]") {
  for (int i = 0; i < 3; ++i)
    std::thread([] {
      t_late.held = nullptr;  // constructed first, so destroyed last
      t_late.held = pool_allocate(100);
      void* other = pool_allocate(100);
      pool_release(other, 100);
    }).join();
  CHECK(late_runs == 3);
}

}  // namespace braid::test
