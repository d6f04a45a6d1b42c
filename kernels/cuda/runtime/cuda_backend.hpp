#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/device_clock.hpp>
#include <braid/core/internal/native_device.hpp>

#include "cuda/runtime/allocator.hpp"
#include "cuda/runtime/gpu.hpp"
#include "cuda/runtime/make_backend.hpp"
#include "cuda/runtime/pinned_memory.hpp"
#include "cuda/runtime/staging.hpp"
#include "cuda/runtime/stream.hpp"
#include "cuda/runtime/tickets.hpp"

namespace braid::cuda {

/// One logical CUDA device: separate memory accounting and stream on a GPU that others may share.
///
/// Copies. Host to device: when the call returns, the host memory has been read and the copy is
/// queued; a non-blocking copy from pinned memory is queued only. Device to host: done when the
/// call returns. Between two logical devices (on one GPU, or on two: a peer copy, or through the
/// pinned ring where that does not work, see peer.hpp): queued
/// after the work that both streams have queued, and before later work of both, so that neither
/// side can change the bytes too early. Ranges must not overlap.
class CudaDevice final : public DeviceBackend, public NativeDevice, public DeviceClock {
 public:
  CudaDevice(Gpu& gpu, int index, bool cache, PinnedMemory& pinned);
  [[nodiscard]] std::string description() const override;
  Block allocate(std::size_t bytes, Stream& stream) override;
  void release(const Block& block, Stream& stream) noexcept override;
  void release_after(const Block& block, Stream& stream,
                     std::span<const std::shared_ptr<Stream>> users) noexcept override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  /// Returns a stream with its own pool of memory, for a graph.
  [[nodiscard]] std::shared_ptr<Stream> make_private_stream();
  /// The counters of one of the device's streams.
  [[nodiscard]] unsigned* tickets(CudaStream& stream) { return tickets_.of(stream, stream_); }
  /// Null without a cache: a driver allocation of each block cannot be repeated by a graph.
  [[nodiscard]] std::unique_ptr<detail::StepRecorder> make_recorder() override;
  [[nodiscard]] std::unique_ptr<Event> make_timed_event() override;
  [[nodiscard]] double seconds_between(const Event& from, const Event& to) override;
  [[nodiscard]] int real_gpu() const noexcept override;
  [[nodiscard]] Stream& default_stream() noexcept override { return stream_; }
  [[nodiscard]] std::shared_ptr<Stream> upload_stream() override { return uploads_; }
  void copy(const CopyDesc& copy, Stream& stream) override;
  [[nodiscard]] bool host_memory() const noexcept override { return false; }
  [[nodiscard]] MemoryStats memory_stats() const override { return allocator_.stats(); }
  void reset_peak_memory() override { allocator_.reset_peak(); }
  void set_memory_capacity(std::size_t bytes) override { allocator_.set_capacity(bytes); }
  void empty_cache() override;
  void fail_allocation(std::uint64_t k, bool persistent) override {
    allocator_.fail_allocation(k, persistent);
  }
  [[nodiscard]] const KernelTable& kernels() const noexcept override { return kernels_; }
  void own_thread() noexcept override { cuda::own_thread(); }
  [[nodiscard]] int gpu() const noexcept override { return gpu_.ordinal(); }
  [[nodiscard]] std::string address() const override;
  [[nodiscard]] Size size() const override;
  void make_current() override;

 private:
  void copy_between(const CopyDesc& copy, CudaStream& stream);

  Gpu& gpu_;
  const Device device_;
  const KernelTable& kernels_;
  std::atomic<std::uint32_t> streams_{0};  // count of those that programs created
  CudaStream stream_;
  std::shared_ptr<CudaStream> uploads_;
  StreamAllocator allocator_;  // destroyed before the streams that its blocks wait for
  TicketCounters tickets_;
  PinnedMemory& pinned_;
  // two rings: a copy to the host waits for its stream, and uploads must not wait with it
  PinnedRing ring_, downloads_;
};

/// The GPUs of this machine, each as BRAID_CUDA_DEVICES_PER_GPU (default 1) logical devices: with
/// 2, cuda:0 and cuda:1 are on the first GPU. BRAID_CUDA_CACHE=0 allocates every block from the
/// driver: see StreamAllocator.
class CudaBackend final : public Backend {
 public:
  /// Throws DeviceError if BRAID_CUDA_DEVICES_PER_GPU is not a number from 1 to 64, or
  /// BRAID_CUDA_CACHE is neither 0 nor 1, and ArgumentError for a wrong variable of the emulation.
  /// Creates no CUDA context.
  CudaBackend();
  [[nodiscard]] DeviceType type() const noexcept override { return DeviceType::cuda; }
  [[nodiscard]] std::string_view name() const noexcept override { return "cuda"; }
  [[nodiscard]] int device_count() const noexcept override {
    return static_cast<int>(devices_.size());
  }
  [[nodiscard]] DeviceBackend& device(int index) override {
    return *devices_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] PinnedAllocator* pinned_allocator() noexcept override { return pinned_.get(); }

 private:
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::unique_ptr<PinnedMemory> pinned_;  // null without a GPU
  std::vector<std::unique_ptr<CudaDevice>> devices_;
};

}  // namespace braid::cuda
