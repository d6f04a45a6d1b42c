#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <braid/core/internal/backend.hpp>

#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

/// Page-locked memory of the host. cudaHostAlloc and cudaFreeHost are slow, and the latter waits
/// for devices, so blocks are cached.
///
/// A tensor may be destroyed while queued copies still read its block. Each copy records an event
/// with the block, and a block is used again only when its events are complete (the host asks, and
/// does not wait). Sizes are rounded to one of eight steps for each doubling, and a block serves
/// requests of its own size only. All devices can copy from it. Thread-safe.
class PinnedMemory final : public PinnedAllocator {
 public:
  /// `gpu` is the one through which the driver is called.
  PinnedMemory(Gpu& gpu, Device device) noexcept : gpu_(gpu), device_(device) {}
  ~PinnedMemory() override;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  Block allocate(std::size_t bytes) override;
  void release(const Block& block) noexcept override;
  /// Queues a copy to a device if all bytes at `from` are in a block, and returns whether they are.
  /// Throws CudaError, DeviceLostError.
  bool copy_to_device(void* to, const void* from, std::size_t bytes, CudaStream& stream);
  /// Returns cached blocks that no copy uses to the driver.
  void empty_cache() noexcept;

 private:
  struct Cached;
  struct Pinned {
    char* data = nullptr;
    std::size_t bytes = 0;
    Cached* cached = nullptr;  // of this size
    Pinned* next = nullptr;    // in that list
    bool in_use = false;
    std::vector<std::unique_ptr<CudaEvent>> copies;  // not known to be complete
  };
  /// The free blocks of one size, the oldest first.
  struct Cached {
    Pinned *first = nullptr, *last = nullptr;
  };
  using Blocks = std::map<const char*, Pinned>;

  [[nodiscard]] static std::size_t rounded(std::size_t bytes) noexcept;
  [[nodiscard]] bool copied(Pinned& block);
  [[nodiscard]] Pinned* take(Cached& list);
  [[nodiscard]] std::unique_ptr<CudaEvent> event(Gpu& gpu, Device device);
  void free_unused() noexcept;

  Gpu& gpu_;
  const Device device_;
  std::mutex mutex_;  // guards everything below
  Blocks blocks_;
  std::map<std::size_t, Cached> lists_;
  std::vector<std::unique_ptr<CudaEvent>> spare_;
};

}  // namespace braid::cuda
