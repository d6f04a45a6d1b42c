#pragma once
#include <atomic>

#include <braid/core/backend.hpp>

#include "cpu/runtime/pool.hpp"

namespace braid::cpu {

/// Work on a CPU device is done when the call that requested it returns. So an event is done as
/// soon as it was recorded (or if it was never used).
class CpuEvent final : public Event {
 public:
  [[nodiscard]] bool done() const override { return true; }

 private:
  friend class CpuStream;
  std::atomic<bool> recorded_{false};  // orders the recorder's writes before the waiter's reads
};

/// Runs all work synchronously on the calling thread, with the helpers of its device.
class CpuStream final : public Stream {
 public:
  CpuStream(Device device, Pool& pool) noexcept : Stream(device), pool_(pool) {}
  void record(Event& event) override {
    if (auto* const own = dynamic_cast<CpuEvent*>(&event))
      own->recorded_.store(true, std::memory_order_release);
  }
  /// CPU work runs on the calling thread, so that thread waits for an event of another backend.
  void wait(const Event& event) override {
    if (const auto* const own = dynamic_cast<const CpuEvent*>(&event))
      (void)own->recorded_.load(std::memory_order_acquire);
    else event.synchronize();
  }
  void synchronize() override {}
  [[nodiscard]] Pool& pool() const noexcept { return pool_; }

 private:
  Pool& pool_;
};

}  // namespace braid::cpu
