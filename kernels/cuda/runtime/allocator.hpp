#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/memory_accounting.hpp>

#include "cuda/runtime/block_pool.hpp"
#include "cuda/runtime/gpu.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

/// The memory of one logical device: segments of the driver, split into blocks and merged again
/// (block_pool.hpp), with one pool for each stream.
///
/// A released block may still be read and written by work queued on its stream. The same stream
/// reuses it immediately, because its later work starts after that. Memory of other streams is used
/// only in two cases, because further dependencies would make a program's streams run one after
/// another. If a stream is idle, its segments that are entirely free move to the requesting stream.
/// If there is no other memory, a block is borrowed: an event makes the borrower wait for the
/// owner's work, and another makes the owner wait for the borrower's. A caller that uses a block on
/// a stream other than the one it is released on must first order the two with events (copies
/// between devices do that themselves).
///
/// Sizes are rounded to 256 bytes; BlockPool::segment_bytes says how large a segment is. After the
/// first steps of a program that repeats itself no segment is created any more. An allocation from
/// the cache (a hit) makes no driver call and no host allocation, and takes one lock. The lock is
/// never held during cudaMalloc or cudaFree, and during a wait only if an event failed.
///
/// A stream of a graph has private memory: its pool and the others do not borrow from each other,
/// and its segments are kept until the stream ends. While the graph is recorded, a miss calls
/// cudaMalloc in the relaxed mode, and nothing is returned to the driver.
///
/// The upload stream's blocks are used by other streams. One that is freed is pending until the
/// work of those streams is done: the upload stream takes other memory meanwhile, and so the next
/// upload overlaps that work. If kPending blocks that fit a request are pending, or two that are
/// larger than kPendingBytes together, the request gets the oldest of them, and the upload stream
/// waits for its users. The host never waits.
///
/// MemoryAccounting counts exactly, and decides what may be reserved. A request that finds no room
/// returns all free segments to the driver, also those of the GPU's other logical devices if the
/// driver is out of memory. It retries once, with a segment of its own size, before it throws. The
/// capacity limits in_use; it also limits in_use + cached, except for the free parts of segments
/// that are partly in use. All functions are thread-safe.
///
/// Without a cache (BRAID_CUDA_CACHE=0) a block is one driver allocation of exactly the requested
/// bytes, so that compute-sanitizer sees every access past its end. It is returned to the driver
/// after a wait for its stream. Under the emulation, 256 bytes after each block of the cache must
/// not be accessed.
class StreamAllocator {
 public:
  /// `uploads`: the device's upload stream; null if it has none.
  StreamAllocator(Gpu& gpu, Device device, bool cache, CudaStream* uploads = nullptr);
  ~StreamAllocator();
  StreamAllocator(const StreamAllocator&) = delete;
  StreamAllocator& operator=(const StreamAllocator&) = delete;

  /// Returns uninitialised memory for work on `stream`, 256-byte aligned. Throws OutOfMemoryError,
  /// CudaError, DeviceLostError.
  [[nodiscard]] Block allocate(std::size_t bytes, CudaStream& stream);
  /// The block may be reused after the work queued on `stream`.
  void release(const Block& block, CudaStream& stream) noexcept;
  /// The same for a block that other streams use too: it may be reused after the work queued on
  /// `users`. Memory of the upload stream waits outside of the free memory until that work is done,
  /// so that the upload stream does not wait for it.
  void release_after(const Block& block, CudaStream& stream,
                     std::span<const std::shared_ptr<Stream>> users) noexcept;
  [[nodiscard]] bool caches() const noexcept { return cache_; }
  /// Called when the stream ends: its memory moves to `successor`, which waits for its work. If the
  /// work cannot be waited for, the memory is never used again.
  void retire(CudaStream& stream, CudaStream& successor) noexcept;

  [[nodiscard]] MemoryStats stats() const;
  void reset_peak() { accounting_.reset_peak(); }
  void set_capacity(std::size_t bytes);
  void empty_cache() noexcept { free_cached(0); }
  /// Returns all free segments to the driver, also those of the GPU's other logical devices.
  void trim() noexcept;
  /// See braid::fail_allocation.
  void fail_allocation(std::uint64_t k, bool persistent) {
    accounting_.fail_allocation(k, persistent);
  }

  /// Counts a failed request, and throws OutOfMemoryError.
  [[noreturn]] void refuse(std::size_t bytes, const char* why) { accounting_.refuse(bytes, why); }

  /// Returns the bytes that a request counts as, or 0 if no block can be that large.
  [[nodiscard]] std::size_t block_bytes(std::size_t bytes) const noexcept;

  static constexpr std::size_t kPending = 4, kPendingBytes = std::size_t{64} << 20;

 private:
  /// A freed block of the upload stream. An event is complete when one of its users is done.
  struct Pending {
    Part* part;
    std::size_t bytes;
    std::vector<std::unique_ptr<CudaEvent>> users;
  };
  [[nodiscard]] static bool lets_borrow(const BlockPool& pool, const CudaStream& stream) noexcept;
  [[nodiscard]] static bool keeps(const BlockPool& pool) noexcept;
  [[nodiscard]] bool keep_pending(const Block& block, CudaStream& stream,
                                  std::span<const std::shared_ptr<Stream>> users);
  [[nodiscard]] static bool done(const Pending& pending) noexcept;
  void reclaim(std::size_t index) noexcept;
  void reclaim_done() noexcept;
  void reclaim_all() noexcept;
  [[nodiscard]] Part* from_pending(std::size_t size);
  [[nodiscard]] Part* cached(std::size_t size, CudaStream& stream);
  [[nodiscard]] Part* from_idle(std::size_t size, CudaStream& stream);
  [[nodiscard]] Part* borrow(std::size_t size, CudaStream& stream);
  [[nodiscard]] Part* obtain(std::size_t size, CudaStream& stream, const char** why);
  [[nodiscard]] Part* cut_new(void* data, std::size_t segment, std::size_t size,
                              CudaStream& stream);
  [[nodiscard]] std::size_t segment_bytes(std::size_t size, bool last) const noexcept;
  [[nodiscard]] Block allocate_direct(std::size_t bytes);
  void release_direct(const Block& block, CudaStream& stream) noexcept;
  [[nodiscard]] BlockPool* find_pool(const CudaStream& stream) noexcept;
  [[nodiscard]] BlockPool& pool_of(CudaStream& stream);
  [[nodiscard]] void* allocate_new(std::size_t bytes);
  void put(Part& part, CudaStream& stream) noexcept;
  void free_cached(std::size_t target) noexcept;
  void hand_out(std::size_t size, bool hit) noexcept;

  Gpu& gpu_;
  const Device device_;
  const bool cache_;

  MemoryAccounting accounting_;  // its mutex guards everything below

  Parts parts_;
  std::vector<std::unique_ptr<BlockPool>> pools_;
  CudaStream* const uploads_;
  std::vector<Pending> pending_;  // the oldest first
  std::vector<std::unique_ptr<CudaEvent>> spare_;
};

}  // namespace braid::cuda
