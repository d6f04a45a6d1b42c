#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <braid/core/backend.hpp>
#include <braid/core/device.hpp>
#include <braid/core/memory.hpp>

namespace braid {

/// The memory source of a caching allocator. Several threads may call both functions at the same
/// time.
struct MemorySource {
  /// Returns null if there is no memory; aligned to at least 64 bytes.
  void* (*allocate)(std::size_t bytes) noexcept;
  void (*release)(void* data, std::size_t bytes) noexcept;  ///< the same `bytes` as in allocate
  bool host_memory;                                         ///< readable by the host
};

/// Host memory, 64-byte aligned. From 4 MiB on it is 2-MiB aligned and advised to use huge pages.
[[nodiscard]] MemorySource host_memory_source() noexcept;

/// The allocator of one device. Keeps freed blocks by size class and counts memory exactly. Its
/// memory can be limited (set_capacity).
///
/// Size classes are multiples of 64 bytes up to 1 KiB, then four for each doubling. Each thread has
/// a magazine, a few free blocks of each class, which it uses without a lock. Blocks that do not
/// fit there go to lists shared by the device's threads. Flushing (empty_cache, or a request that
/// does not fit the capacity) takes the blocks out of every thread's magazine. When a thread ends,
/// the blocks of its magazine go to the shared lists.
/// A request that finds no memory frees everything cached and tries once more before it throws.
/// Without a capacity, cached memory is bounded too: it is freed when a new block would make in_use
/// + cached exceed 2 · peak + 256 MiB.
/// Thread-safe. Under AddressSanitizer free blocks are poisoned. Must be destroyed after its last
/// block was released.
class CachingAllocator {
 public:
  /// Throws only std::bad_alloc.
  CachingAllocator(Device device, MemorySource source);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Allocates uninitialised memory. Throws OutOfMemoryError.
  [[nodiscard]] Block allocate(std::size_t bytes);
  /// Gives a block back to this allocator.
  void release(const Block& block) noexcept;

  [[nodiscard]] MemoryStats stats() const;
  void reset_peak() noexcept;
  void set_capacity(std::size_t bytes);
  void empty_cache();
  /// See braid::fail_allocation.
  void fail_allocation(std::uint64_t k, bool persistent);

  /// Size of the block that serves a request of `bytes`; 0 if no class is large enough.
  [[nodiscard]] static std::size_t block_bytes(std::size_t bytes) noexcept;

  struct Magazine;  // private to the implementation

 private:
  friend struct AllocatorThreads;

  Magazine* magazine() noexcept;
  Block allocate_slowly(std::size_t bytes);
  void release_slowly(void* data, int size_class) noexcept;
  [[nodiscard]] Block hand_out(void* data, std::size_t bytes, int size_class) noexcept;
  [[nodiscard]] const char* injected_failure();
  [[nodiscard]] void* obtain(int size_class, const char** why);
  void* take_shared(int size_class) noexcept;
  void put_shared(void* data, int size_class) noexcept;
  void drain_magazines() noexcept;
  void free_cached(std::size_t target) noexcept;
  void give_back(void* data, std::size_t size) noexcept;
  void update_mode() noexcept;
  void retire(Magazine* magazine) noexcept;

  // Read on every call.
  const Device device_;
  const MemorySource source_;
  int slot_ = -1;             // index of this allocator in each thread's table
  std::uint64_t serial_ = 0;  // distinguishes it from an earlier allocator with that slot
  std::atomic<std::uint32_t> mode_{0};

  alignas(64) std::atomic<std::size_t> in_use_{0};
  std::atomic<std::size_t> peak_{0};

  // guards everything below; not held while the source is called, unless a shared list cannot grow
  alignas(64) mutable std::mutex mutex_;
  std::size_t reserved_ = 0;  // in_use + cached
  std::size_t capacity_ = 0;
  std::uint64_t fail_in_ = 0;
  bool fail_persistent_ = false;
  // excluding what the magazines count themselves
  std::uint64_t allocations_ = 0, hits_ = 0, releases_ = 0, retries_ = 0, failures_ = 0;
  // free blocks by class
  std::vector<std::vector<void*>> shared_;
  std::vector<std::unique_ptr<Magazine>> magazines_;
  std::vector<Magazine*> idle_magazines_;  // of threads that ended, for reuse
};

}  // namespace braid
