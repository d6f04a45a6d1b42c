#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include <braid/core/internal/backend.hpp>

#include "cuda/runtime/gpu.hpp"

namespace braid::cuda {

class CudaGraph;

/// A CUDA event, without timing unless requested. It is created when it is first recorded; before
/// that, it counts as done.
class CudaEvent final : public Event {
 public:
  CudaEvent(Gpu& gpu, Device device, bool timed = false) noexcept
      : gpu_(gpu), device_(device), timed_(timed) {}
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  /// Throws DeviceLostError if the work before it failed permanently.
  [[nodiscard]] bool done() const override;
  /// Also throws what kernels reported (device_errors.hpp).
  void synchronize() const override;
  /// As synchronize, but does not throw what kernels reported.
  void await() const;
  [[nodiscard]] bool belongs_to(const Gpu& gpu, Device device) const noexcept {
    return &gpu_ == &gpu && device_ == device;
  }
  /// Null if it was never recorded.
  [[nodiscard]] cudaEvent_t native() const noexcept { return native_; }

 private:
  friend class CudaStream;
  /// Returns the event, creating it if there is none.
  cudaEvent_t made();

  Gpu& gpu_;
  const Device device_;
  const bool timed_;
  cudaEvent_t native_ = nullptr;
};

/// A non-blocking CUDA stream of one logical device. It is created at its first use, so a program
/// that stays on the CPU never creates a context. Thread-safe. On a lost device, functions that are
/// not noexcept throw DeviceLostError without calling CUDA.
class CudaStream : public Stream {
 public:
  /// The number of a device's upload stream.
  static constexpr std::uint32_t kUploads = 0xffffffffu;
  /// `number`: 0 for the device's own stream, else its number in reports.
  CudaStream(Gpu& gpu, Device device, std::uint32_t number = 0,
             bool private_memory = false) noexcept
      : Stream(device),
        gpu_(gpu),
        number_(number),
        private_(private_memory),
        dependency_(gpu, device) {}
  /// Does not wait: the driver finishes the queued work, then releases the stream.
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

  /// The graph that records the stream's work; null while the work is queued.
  [[nodiscard]] CudaGraph* graph() const noexcept { return graph_.load(std::memory_order_relaxed); }
  /// `beside`: another stream of the device, for what must not be recorded.
  void set_graph(CudaGraph* graph, CudaStream* beside) noexcept {
    beside_ = beside;
    graph_.store(graph, std::memory_order_relaxed);
  }
  [[nodiscard]] CudaStream& beside() noexcept { return graph() != nullptr ? *beside_ : *this; }
  /// True if the memory of its pool is for its own work alone, which a graph repeats.
  [[nodiscard]] bool has_private_memory() const noexcept { return private_; }

  /// See TicketCounters; null before a kernel needs them.
  [[nodiscard]] unsigned* tickets() const noexcept {
    return tickets_.load(std::memory_order_acquire);
  }
  void set_tickets(unsigned* counters) noexcept {
    tickets_.store(counters, std::memory_order_release);
  }

  [[nodiscard]] Gpu& gpu() const noexcept { return gpu_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// Not 0, and not the id of any other stream of the process.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// Returns the CUDA stream, creating it if there is none.
  [[nodiscard]] cudaStream_t get();
  /// Work queued on `later` from now on starts after all work queued here so far. The host does not
  /// wait.
  void precede(CudaStream& later);
  /// Throws CaptureError if the stream's work is recorded: a graph has no events for the outside.
  void refuse_in_graph(const char* op) const;
  /// True if nothing is queued here, as far as can be seen without waiting.
  [[nodiscard]] bool idle() const noexcept;
  /// Waits for the queued work; for destructors and for returning memory. Returns true on success,
  /// or if nothing was ever queued.
  bool settle_work() noexcept;
  /// settle_work for work that could not be ordered with events. If it cannot be waited for either,
  /// its GPU and `other` are marked as lost, because memory that it still uses might be reused.
  void settle_or_lose(Gpu& other) noexcept;

 private:
  [[nodiscard]] static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> ids{0};
    return ids.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  Gpu& gpu_;
  const std::uint32_t number_;
  const std::uint64_t id_ = next_id();
  const bool private_;
  std::atomic<CudaGraph*> graph_{nullptr};
  CudaStream* beside_ = nullptr;
  std::atomic<cudaStream_t> native_{nullptr};
  std::atomic<unsigned*> tickets_{nullptr};
  std::mutex mutex_;  // guards creation, and dependency_
  CudaEvent dependency_;
};

}  // namespace braid::cuda
