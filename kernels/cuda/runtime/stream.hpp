#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include <braid/core/backend.hpp>

#include "cuda/runtime/gpu.hpp"

namespace braid::cuda {

/// A CUDA event, without timing unless it is asked for. Made where it is first recorded; one that
/// never was is done.
class CudaEvent final : public Event {
 public:
  CudaEvent(Gpu& gpu, Device device, bool timed = false) noexcept
      : gpu_(gpu), device_(device), timed_(timed) {}
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  /// Throws DeviceLostError if the work before it failed for good.
  [[nodiscard]] bool done() const override;
  /// Also throws what kernels reported (device_errors.hpp).
  void synchronize() const override;
  /// As synchronize, without asking what kernels reported.
  void await() const;
  /// Null if it was never recorded.
  [[nodiscard]] cudaEvent_t native() const noexcept { return native_; }

 private:
  friend class CudaStream;
  /// The event, made if there is none.
  cudaEvent_t made();

  Gpu& gpu_;
  const Device device_;
  const bool timed_;
  cudaEvent_t native_ = nullptr;
};

/// A non-blocking CUDA stream of one logical device, made where it is first used: a program that
/// stays on the CPU never makes a context. All functions may be called from any thread. On a lost
/// device everything but the destructor throws DeviceLostError, without a call of CUDA.
class CudaStream : public Stream {
 public:
  /// `number`: 0 for the device's own stream, else what reports call it.
  CudaStream(Gpu& gpu, Device device, std::uint32_t number = 0) noexcept
      : Stream(device), gpu_(gpu), number_(number), handover_(gpu, device) {}
  /// Does not wait: the driver finishes what is queued, then lets go of the stream.
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void record(Event& event) override;
  void wait(const Event& event) override;
  void wait_for(Stream& earlier) override;
  /// Also throws what kernels reported (device_errors.hpp).
  void synchronize() override;
  /// The cudaStream_t; null before the first use.
  [[nodiscard]] void* native() const noexcept override {
    return native_.load(std::memory_order_acquire);
  }

  [[nodiscard]] Gpu& gpu() const noexcept { return gpu_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// The CUDA stream, made if there is none.
  [[nodiscard]] cudaStream_t get();
  /// Work queued on `later` from now on starts after all that is queued here so far; the host does
  /// not wait.
  void precede(CudaStream& later);
  /// True if nothing is queued here, as far as that can be seen without waiting.
  [[nodiscard]] bool idle() const noexcept;
  /// Waits for the queued work; for destructors and for giving memory back. True if that went well,
  /// or if nothing was ever queued.
  bool settle_work() noexcept;
  /// settle_work for work whose order could not be made. Where it cannot be waited for either, its
  /// GPU and `other` are lost: somebody might use memory that it still works on.
  void settle_or_lose(Gpu& other) noexcept;

 private:
  Gpu& gpu_;
  const std::uint32_t number_;
  std::atomic<cudaStream_t> native_{nullptr};
  std::mutex mutex_;  // of the making, and of handover_
  CudaEvent handover_;
};

}  // namespace braid::cuda
