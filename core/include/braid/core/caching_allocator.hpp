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

/// Where a caching allocator gets its memory from. Both functions may be called by several threads
/// at once.
struct MemorySource {
  /// null if there is none; 64-byte aligned at least
  void* (*allocate)(std::size_t bytes) noexcept;
  void (*release)(void* data, std::size_t bytes) noexcept;  ///< the same bytes as allocated
  bool host_memory;                                         ///< readable by the host
};

/// Memory of the host: 64-byte aligned; from 4 MiB on 2-MiB aligned and advised to use huge pages.
[[nodiscard]] MemorySource host_memory_source() noexcept;

/// The allocator of one device: keeps freed blocks by size class, accounts exactly, and can be
/// limited.
///
/// Size classes are multiples of 64 bytes up to 1 KiB, then four for each doubling. A thread has a
/// magazine of a few free blocks of each class that it takes from and puts back to without a lock;
/// what does not fit goes to lists shared by the device's threads. Flushing (empty_cache, or a
/// request that does not fit the capacity) takes the blocks out of every thread's magazine. A
/// thread's end gives its magazine back.
/// A request that finds no room frees everything cached and tries once more before it throws.
/// Without a capacity, cached memory is bounded too: it is freed when a new block would make in_use
/// + cached more than 2 · peak + 256 MiB.
/// All functions may be called from any thread. Under AddressSanitizer free blocks are poisoned.
/// Destroy it after its last block was released.
class CachingAllocator {
 public:
  /// Throws std::bad_alloc only.
  CachingAllocator(Device device, MemorySource source);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Uninitialised memory. Throws OutOfMemoryError.
  [[nodiscard]] Block allocate(std::size_t bytes);
  /// Takes a block of this allocator back.
  void release(const Block& block) noexcept;

  [[nodiscard]] MemoryStats stats() const;
  void reset_peak() noexcept;
  void set_capacity(std::size_t bytes);
  void empty_cache();
  /// See braid::fail_allocation.
  void fail_allocation(std::uint64_t k, bool persistent);

  /// The size of the block that serves a request, 0 if no class is large enough.
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
  int slot_ = -1;             // of this allocator in each thread's table
  std::uint64_t serial_ = 0;  // tells it from an earlier allocator of that slot
  std::atomic<std::uint32_t> mode_{0};

  alignas(64) std::atomic<std::size_t> in_use_{0};
  std::atomic<std::size_t> peak_{0};

  // guards everything below; never held while the source is called
  alignas(64) mutable std::mutex mutex_;
  std::size_t reserved_ = 0;  // in_use + cached
  std::size_t capacity_ = 0;
  std::uint64_t fail_in_ = 0;
  bool fail_persistent_ = false;
  // without the magazines' own
  std::uint64_t allocations_ = 0, hits_ = 0, releases_ = 0, retries_ = 0, failures_ = 0;
  // free blocks by class
  std::vector<std::vector<void*>> shared_;
  std::vector<std::unique_ptr<Magazine>> magazines_;
  std::vector<Magazine*> idle_magazines_;  // of threads that ended
};

}  // namespace braid
