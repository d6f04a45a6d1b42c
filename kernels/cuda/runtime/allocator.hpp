#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <braid/core/backend.hpp>

#include "cuda/runtime/gpu.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

/// The memory of one logical device: freed blocks are kept by size class and by the stream that they were freed on.
///
/// A block that comes back may still be read and written by work queued on its stream. The same stream reuses it at once, because its later work starts after
/// that; another stream gets it only behind an event, without a wait of the host, and where the first one still works only if there is no other memory: streams
/// of a program's own would otherwise work one after the other. Whoever uses a block on a stream other than the one it is released on orders
/// the two with events first (copies between devices do that themselves).
///
/// Size classes are those of the CPU's allocator, from 256 bytes on; a block is one allocation of the driver. A hit makes no call of the driver. A request that
/// finds no room, in the device or under the capacity, gives everything cached back and tries once more before it throws. Without a capacity, cached memory is
/// given back when a new block would make in_use + cached more than 2 · peak + 256 MiB. Counting is exact. All functions may be called from any thread; one lock,
/// which is never held over cudaMalloc, cudaFree or a wait.
class StreamAllocator {
 public:
  StreamAllocator(Gpu& gpu, Device device) noexcept : gpu_(gpu), device_(device) {}
  ~StreamAllocator();
  StreamAllocator(const StreamAllocator&) = delete;
  StreamAllocator& operator=(const StreamAllocator&) = delete;

  /// Uninitialised memory for work on `stream`, 256-byte aligned. Throws OutOfMemoryError, CudaError, DeviceLostError.
  [[nodiscard]] Block allocate(std::size_t bytes, CudaStream& stream);
  /// The block may be reused after what is queued on `stream`.
  void release(const Block& block, CudaStream& stream) noexcept;
  /// The stream ends: what it freed goes to `heir`, which has been told to wait for its work; to nobody, for good, if there is none.
  void forget(const CudaStream& stream, CudaStream* heir) noexcept;

  [[nodiscard]] MemoryStats stats() const;
  void reset_peak() noexcept;
  void set_capacity(std::size_t bytes);
  void empty_cache() noexcept { free_cached(0); }
  /// See braid::fail_allocation.
  void fail_allocation(std::uint64_t k, bool persistent);

  /// The size of the block that serves a request, 0 if none is that large.
  [[nodiscard]] static std::size_t block_bytes(std::size_t bytes) noexcept;

 private:
  /// What a stream freed. The lists' nodes are kept, so that a block that comes back seldom needs host memory.
  struct Pool {
    CudaStream* stream;
    std::map<std::size_t, std::vector<void*>> free;
  };

  struct Found {
    void* data = nullptr;
    CudaStream* after = nullptr;  // the stream whose work comes first
    bool fresh = false;           // from the driver
  };
  enum class From { idle, all };  // of which other streams
  [[nodiscard]] Found take(std::size_t size, const CudaStream& stream, From from);
  [[nodiscard]] Pool& pool_of(CudaStream* stream);
  [[nodiscard]] const char* injected_failure();
  [[nodiscard]] Found obtain(std::size_t size, const CudaStream& stream, const char** why);
  [[nodiscard]] void* allocate_new(std::size_t size);
  void return_block(void* data, std::size_t size, CudaStream* stream) noexcept;
  void give_back(void* data, std::size_t size, CudaStream& stream) noexcept;
  void free_cached(std::size_t target) noexcept;
  void hand_out(std::size_t size) noexcept;
  [[noreturn]] void fail(std::size_t bytes, const char* why);

  Gpu& gpu_;
  const Device device_;

  mutable std::mutex mutex_;  // guards everything below
  std::vector<std::unique_ptr<Pool>> pools_;
  std::size_t in_use_ = 0, reserved_ = 0, peak_ = 0, capacity_ = 0;
  std::uint64_t allocations_ = 0, hits_ = 0, releases_ = 0, retries_ = 0, failures_ = 0;
  std::uint64_t fail_in_ = 0;
  bool fail_persistent_ = false;
};

}  // namespace braid::cuda
