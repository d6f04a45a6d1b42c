#include <braid/core/internal/caching_allocator.hpp>

#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <utility>

#include "memory/sanitizers.hpp"
#include "memory/thread_local.hpp"

namespace braid {

namespace {

constexpr int kSmallClasses = 16;  // 64, 128, … 1024
constexpr int kFirstOctave = 10;   // then 1280, 1536, 1792, 2048, …
constexpr int kLastOctave = 47;
constexpr int kClasses = kSmallClasses + 4 * (kLastOctave - kFirstOctave + 1);
constexpr int kSlots = 4;  // slots of a magazine per size class
constexpr int kAllocators = 128;

int class_of(std::size_t bytes) noexcept {
  if (bytes <= 1024) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
  const std::size_t last = bytes - 1;
  const int octave = static_cast<int>(std::bit_width(last)) - 1;
  if (octave > kLastOctave) return -1;
  return kSmallClasses + 4 * (octave - kFirstOctave) + static_cast<int>((last >> (octave - 2)) & 3);
}

std::size_t size_of_class(int index) noexcept {
  if (index < kSmallClasses) return 64 * (static_cast<std::size_t>(index) + 1);
  const int octave = kFirstOctave + (index - kSmallClasses) / 4;
  return (static_cast<std::size_t>(5 + (index - kSmallClasses) % 4)) << (octave - 2);
}

// Increments a counter that only this thread writes and any thread may read.
void count(std::atomic<std::uint64_t>& counter) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

// One thread's cache of free blocks. Only the owner fills empty slots, so it needs no
// read-modify-write for that. Any thread may empty a full slot with an exchange.
struct alignas(64) CachingAllocator::Magazine {
  std::atomic<void*> slots[kClasses][kSlots] = {};
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> releases{0};

  void* pop(int size_class) noexcept {
    auto& row = slots[size_class];
    for (int i = kSlots - 1; i >= 0; --i) {
      if (row[i].load(std::memory_order_relaxed) == nullptr) continue;
      if (void* data = row[i].exchange(nullptr, std::memory_order_acq_rel)) return data;
    }
    return nullptr;
  }
  bool push(int size_class, void* data) noexcept {
    for (auto& slot : slots[size_class]) {
      if (slot.load(std::memory_order_acquire) != nullptr) continue;
      slot.store(data, std::memory_order_release);
      return true;
    }
    return false;
  }
};

// A thread's table holds its magazine of each allocator, indexed by the allocator's slot.
struct AllocatorThreads {
  struct Entry {
    std::uint64_t serial = 0;
    CachingAllocator::Magazine* magazine = nullptr;
  };
  struct Table {
    Entry entries[kAllocators];
  };

  // Protects the list of living allocators. Locked before an allocator's own mutex. Never
  // destroyed, because threads may end after main().
  static std::mutex& mutex() noexcept {
    static std::mutex& instance = *new std::mutex;
    return instance;
  }
  static inline constinit CachingAllocator* living[kAllocators] = {};
  static inline constinit std::uint64_t last_serial = 0;

  static void enter(CachingAllocator& allocator) {
    const std::lock_guard lock(mutex());
    allocator.serial_ = ++last_serial;
    for (int i = 0; i < kAllocators; ++i) {
      if (living[i] != nullptr) continue;
      living[i] = &allocator;
      allocator.slot_ = i;
      return;
    }
  }
  static void leave(CachingAllocator& allocator) noexcept {
    const std::lock_guard lock(mutex());
    if (allocator.slot_ >= 0) living[allocator.slot_] = nullptr;
  }
  static void end_thread(Table& table) noexcept {
    const std::lock_guard lock(mutex());
    for (int i = 0; i < kAllocators; ++i) {
      const Entry& entry = table.entries[i];
      if (entry.magazine != nullptr && living[i] != nullptr && living[i]->serial_ == entry.serial)
        living[i]->retire(entry.magazine);
    }
  }
};

namespace {

BRAID_FAST_THREAD_LOCAL constinit thread_local AllocatorThreads::Table* t_table = nullptr;
constinit thread_local bool t_closed = false;

struct ThreadEnd {
  bool open = true;
  ~ThreadEnd() {
    t_closed = true;
    if (AllocatorThreads::Table* table = std::exchange(t_table, nullptr)) {
      AllocatorThreads::end_thread(*table);
      delete table;
    }
  }
};
thread_local ThreadEnd t_end;

AllocatorThreads::Table* open_table() noexcept {
  // reading t_end.open registers the destructor of t_end
  if (t_table != nullptr || t_closed || !t_end.open) return t_table;
  t_table = new (std::nothrow) AllocatorThreads::Table;
  return t_table;
}

}  // namespace

CachingAllocator::CachingAllocator(Device device, MemorySource source)
    : source_(source), accounting_(device), shared_(kClasses) {
  AllocatorThreads::enter(*this);
}

CachingAllocator::~CachingAllocator() {
  AllocatorThreads::leave(*this);
  free_cached(0);
}

std::size_t CachingAllocator::block_bytes(std::size_t bytes) noexcept {
  const int index = class_of(bytes);
  return index < 0 ? 0 : size_of_class(index);
}

Block CachingAllocator::allocate(std::size_t bytes) {
  if (accounting_.unrestricted()) [[likely]] {
    const AllocatorThreads::Table* table = t_table;
    const int index = class_of(bytes);
    if (table != nullptr && slot_ >= 0 && index >= 0) [[likely]] {
      const AllocatorThreads::Entry& entry = table->entries[slot_];
      if (entry.serial == serial_) [[likely]] {
        if (void* data = entry.magazine->pop(index)) [[likely]] {
          count(entry.magazine->allocations);
          return hand_out(data, bytes, index);
        }
      }
    }
  }
  return allocate_slowly(bytes);
}

void CachingAllocator::release(const Block& block) noexcept {
  const int index = static_cast<int>(block.tag);
  if (source_.host_memory) memory::poison(block.data, size_of_class(index));
  if (accounting_.unrestricted()) [[likely]] {
    const AllocatorThreads::Table* table = t_table;
    if (table != nullptr && slot_ >= 0) [[likely]] {
      const AllocatorThreads::Entry& entry = table->entries[slot_];
      if (entry.serial == serial_) [[likely]] {
        // Count it first: for a thread that drains the magazine, the magazine's blocks are cached.
        accounting_.take_back(size_of_class(index));
        if (entry.magazine->push(index, block.data)) [[likely]] {
          count(entry.magazine->releases);
          return;
        }
        const std::lock_guard lock(accounting_.mutex());
        accounting_.count_release();
        put_shared(block.data, index);
        return;
      }
    }
  }
  release_slowly(block.data, index);
}

Block CachingAllocator::hand_out(void* data, std::size_t bytes, int size_class) noexcept {
  accounting_.hand_out(size_of_class(size_class));
  if (source_.host_memory) memory::unpoison(data, bytes);
  return {data, bytes, static_cast<std::uint64_t>(size_class)};
}

Block CachingAllocator::allocate_slowly(std::size_t bytes) {
  const int index = class_of(bytes);
  const char* why = accounting_.injected_failure();
  if (why == nullptr && index < 0) why = "no block is that large";
  if (why == nullptr) {
    Magazine* own = magazine();
    void* data = nullptr;
    if (own != nullptr && !accounting_.over_capacity()) data = own->pop(index);
    if (data != nullptr) {
      count(own->allocations);
    } else {
      data = obtain(index, &why);
    }
    if (data != nullptr) return hand_out(data, bytes, index);
  }
  accounting_.refuse(bytes, why);
}

// Returns a block from the shared lists, or else from the source. On failure returns null and sets
// *why.
void* CachingAllocator::obtain(int size_class, const char** why) {
  const std::size_t size = size_of_class(size_class);
  for (int attempt = 0;; ++attempt) {
    {
      const std::lock_guard lock(accounting_.mutex());
      const bool over = accounting_.over_capacity();
      void* data = over ? nullptr : take_shared(size_class);
      const bool room = size <= accounting_.room();
      if (data == nullptr && !room && !over) {  // another thread's magazine may have one
        drain_magazines();
        data = take_shared(size_class);
      }
      if (data != nullptr) {
        accounting_.count_allocation(true);
        return data;
      }
      const bool stale = attempt == 0 && accounting_.stale(size);
      *why = room ? nullptr : "over its capacity";
      if (room && !stale) accounting_.reserve(size);
      if (!room && attempt == 1) return nullptr;
      if (!room || stale) accounting_.count_retry();
      if (stale) *why = "cached memory is stale";
    }
    if (*why == nullptr) {
      if (void* data = source_.allocate(size)) {
        if (source_.host_memory) memory::poison(data, size);
        const std::lock_guard lock(accounting_.mutex());
        accounting_.count_allocation(false);
        return data;
      }
      *why = "the system has no more memory";
      const std::lock_guard lock(accounting_.mutex());
      accounting_.unreserve(size);
      if (attempt == 1) return nullptr;
      accounting_.count_retry();
    }
    free_cached(0);
  }
}

void CachingAllocator::release_slowly(void* data, int size_class) noexcept {
  const std::size_t size = size_of_class(size_class);
  Magazine* own = accounting_.over_capacity() ? nullptr : magazine();
  accounting_.take_back(size);
  if (own != nullptr && own->push(size_class, data)) return count(own->releases);
  {
    const std::lock_guard lock(accounting_.mutex());
    accounting_.count_release();
    if (!accounting_.over_capacity()) return put_shared(data, size_class);
  }
  give_back(data, size);
}

void* CachingAllocator::take_shared(int size_class) noexcept {
  std::vector<void*>& blocks = shared_[static_cast<std::size_t>(size_class)];
  if (blocks.empty()) return nullptr;
  void* data = blocks.back();
  blocks.pop_back();
  return data;
}

void CachingAllocator::put_shared(void* data, int size_class) noexcept {
  try {
    shared_[static_cast<std::size_t>(size_class)].push_back(data);
  } catch (...) {  // no memory for the list: release the block instead
    const std::size_t size = size_of_class(size_class);
    if (source_.host_memory) memory::unpoison(data, size);
    source_.release(data, size);
    accounting_.unreserve(size);
  }
}

void CachingAllocator::drain_magazines() noexcept {
  for (const auto& magazine : magazines_)
    for (int index = 0; index < kClasses; ++index)
      for (auto& slot : magazine->slots[index]) {
        if (slot.load(std::memory_order_relaxed) == nullptr) continue;
        if (void* data = slot.exchange(nullptr, std::memory_order_acq_rel)) put_shared(data, index);
      }
}

// Frees cached blocks, largest first, until in-use and cached bytes are at most `target` together.
void CachingAllocator::free_cached(std::size_t target) noexcept {
  std::unique_lock lock(accounting_.mutex());
  drain_magazines();
  for (int index = kClasses - 1; index >= 0; --index)
    while (accounting_.reserved() > target) {
      void* data = take_shared(index);
      if (data == nullptr) break;
      lock.unlock();
      give_back(data, size_of_class(index));
      lock.lock();
    }
}

void CachingAllocator::give_back(void* data, std::size_t size) noexcept {
  if (source_.host_memory) memory::unpoison(data, size);
  source_.release(data, size);
  const std::lock_guard lock(accounting_.mutex());
  accounting_.unreserve(size);
}

CachingAllocator::Magazine* CachingAllocator::magazine() noexcept {
  if (slot_ < 0) return nullptr;
  AllocatorThreads::Table* table = open_table();
  if (table == nullptr) return nullptr;
  AllocatorThreads::Entry& entry = table->entries[slot_];
  if (entry.serial == serial_) return entry.magazine;
  const std::lock_guard lock(accounting_.mutex());
  if (idle_magazines_.empty()) {
    try {
      idle_magazines_.reserve(magazines_.size() + 1);  // so that retire cannot fail
      magazines_.push_back(std::make_unique<Magazine>());
    } catch (...) {
      return nullptr;
    }
    entry = {serial_, magazines_.back().get()};
  } else {
    entry = {serial_, idle_magazines_.back()};
    idle_magazines_.pop_back();
  }
  return entry.magazine;
}

void CachingAllocator::retire(Magazine* magazine) noexcept {
  const std::lock_guard lock(accounting_.mutex());
  for (int index = 0; index < kClasses; ++index)
    while (void* data = magazine->pop(index)) put_shared(data, index);
  idle_magazines_.push_back(magazine);
}

MemoryStats CachingAllocator::stats() const {
  const std::lock_guard lock(accounting_.mutex());
  MemoryStats stats = accounting_.stats();
  for (const auto& magazine : magazines_) {
    const std::uint64_t taken = magazine->allocations.load(std::memory_order_relaxed);
    stats.allocations += taken;
    stats.hits += taken;
    stats.releases += magazine->releases.load(std::memory_order_relaxed);
  }
  return stats;
}

void CachingAllocator::set_capacity(std::size_t bytes) {
  accounting_.set_capacity(bytes);
  if (bytes != 0) free_cached(bytes);
}

void CachingAllocator::empty_cache() { free_cached(0); }

}  // namespace braid
