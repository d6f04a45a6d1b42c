#pragma once
#include <atomic>

#include <braid/core/backend.hpp>

#include "cpu/runtime/pool.hpp"

namespace braid::cpu {

/// Work on a CPU device is done when the call that asked for it returns, so an event is done once it was recorded (or never used).
class CpuEvent final : public Event {
 public:
  [[nodiscard]] bool done() const override { return true; }

 private:
  friend class CpuStream;
  std::atomic<bool> recorded_{false};  // orders the recorder's writes before the waiter's reads
};

/// Runs everything at once on the calling thread, with the helpers of its device.
class CpuStream final : public Stream {
 public:
  CpuStream(Device device, Pool& pool) noexcept : Stream(device), pool_(pool) {}
  void record(Event& event) override { static_cast<CpuEvent&>(event).recorded_.store(true, std::memory_order_release); }
  void wait(const Event& event) override { (void)static_cast<const CpuEvent&>(event).recorded_.load(std::memory_order_acquire); }
  void synchronize() override {}
  [[nodiscard]] Pool& pool() const noexcept { return pool_; }

 private:
  Pool& pool_;
};

}  // namespace braid::cpu
