#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <braid/core/backend.hpp>

#include "cuda/runtime/block_pool.hpp"
#include "cuda/runtime/gpu.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

/// The memory of one logical device: segments of the driver, cut into blocks and joined again
/// (block_pool.hpp), a pool of them for each stream.
///
/// A block that comes back may still be read and written by work queued on its stream. The same
/// stream reuses it at once, because its later work starts after that. Other streams' memory is
/// used in two ways: where a stream is idle, its segments that are free as a whole change the
/// stream; and where there is no other memory, a block is lent behind an event, and comes back
/// behind another. Streams of a program's own would otherwise work one after the other. Whoever
/// uses a block on a stream other than the one it is released on orders the two with events first
/// (copies between devices do that themselves).
///
/// Sizes are rounded to 256 bytes. A segment is 2 MiB for blocks up to 1 MiB, and as large as the
/// request for larger ones: the least memory is held so, and after the first steps of a program
/// that repeats itself no segment is made any more. A hit makes no call of the driver and no host
/// allocation, and takes one lock. It is never held over cudaMalloc or cudaFree, and over a wait
/// only where an event failed.
///
/// A request that finds no room gives all segments that are free back, those of the GPU's other
/// logical devices too where the driver had no more, and tries once more, with a segment of its own
/// size, before it throws. The capacity limits in_use; and in_use + cached, but for the free parts
/// of segments that are partly in use. Without one, free segments are given back when a new one
/// would make in_use + cached more than twice the most that was ever in use, and 256 MiB:
/// reset_peak, which a program calls to measure, does not change what is kept. Counting is exact.
/// All functions may be called from any thread.
///
/// Without a cache (BRAID_CUDA_CACHE=0) a block is one allocation of the driver, of exactly the
/// bytes that were asked for, and is given back after a wait for its stream: so compute-sanitizer
/// sees every byte past a block. Under the emulation blocks of the cache have 256 bytes between
/// them that nobody may touch.
class StreamAllocator {
 public:
  StreamAllocator(Gpu& gpu, Device device, bool cache);
  ~StreamAllocator();
  StreamAllocator(const StreamAllocator&) = delete;
  StreamAllocator& operator=(const StreamAllocator&) = delete;

  /// Uninitialised memory for work on `stream`, 256-byte aligned. Throws OutOfMemoryError,
  /// CudaError, DeviceLostError.
  [[nodiscard]] Block allocate(std::size_t bytes, CudaStream& stream);
  /// The block may be reused after what is queued on `stream`.
  void release(const Block& block, CudaStream& stream) noexcept;
  /// The stream ends: its memory follows `heir` from now on, which waits for its work; if it
  /// cannot, nobody gets the memory again.
  void retire(CudaStream& stream, CudaStream& heir) noexcept;

  [[nodiscard]] MemoryStats stats() const;
  void reset_peak() noexcept;
  void set_capacity(std::size_t bytes);
  void empty_cache() noexcept { free_cached(0); }
  /// See braid::fail_allocation.
  void fail_allocation(std::uint64_t k, bool persistent);

  /// What a request counts for, 0 if none is that large.
  [[nodiscard]] std::size_t block_bytes(std::size_t bytes) const noexcept;

 private:
  [[nodiscard]] bool fits(std::size_t size) const noexcept;
  [[nodiscard]] Part* cached(std::size_t size, CudaStream& stream);
  [[nodiscard]] Part* from_idle(std::size_t size, CudaStream& stream);
  [[nodiscard]] Part* lent(std::size_t size, CudaStream& stream);
  [[nodiscard]] Part* obtain(std::size_t size, CudaStream& stream, const char** why);
  [[nodiscard]] Part* cut_new(void* data, std::size_t segment, std::size_t size,
                              CudaStream& stream);
  [[nodiscard]] std::size_t segment_bytes(std::size_t size, bool last) const noexcept;
  [[nodiscard]] Block allocate_direct(std::size_t bytes);
  void release_direct(const Block& block, CudaStream& stream) noexcept;
  [[nodiscard]] BlockPool* find_pool(const CudaStream& stream) noexcept;
  [[nodiscard]] BlockPool& pool_of(CudaStream& stream);
  [[nodiscard]] const char* injected_failure();
  [[nodiscard]] void* allocate_new(std::size_t bytes);
  void put(Part& part, CudaStream& stream) noexcept;
  void free_cached(std::size_t target) noexcept;
  void trim() noexcept;
  void hand_out(std::size_t size) noexcept;
  [[noreturn]] void fail(std::size_t bytes, const char* why);

  Gpu& gpu_;
  const Device device_;
  const bool cache_;

  mutable std::mutex mutex_;  // guards everything below
  Parts parts_;
  std::vector<std::unique_ptr<BlockPool>> pools_;
  // kept: nobody's, because a wait for its work failed
  std::size_t in_use_ = 0, reserved_ = 0, kept_ = 0, peak_ = 0, capacity_ = 0;
  std::size_t most_ = 0;  // that was in use since the start
  std::uint64_t allocations_ = 0, hits_ = 0, releases_ = 0, retries_ = 0, failures_ = 0;
  std::uint64_t fail_in_ = 0;
  bool fail_persistent_ = false;
};

}  // namespace braid::cuda
