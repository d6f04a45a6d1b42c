#pragma once
#include <atomic>
#include <chrono>
#include <thread>

#include <braid/core/error.hpp>
#include <braid/kernels/cuda_native.hpp>

#include "simt/cuda_runtime.hpp"

namespace braid::test {

/// Holds a stream up until open(): nobody may depend on what is queued behind it. After five
/// seconds it gives way, and was too late.
class Gate {
 public:
  explicit Gate(Stream& stream) : stream_(stream) {
    const cuda::NativeStream native("gate", stream);
    native.check(cudaLaunchHostFunc(static_cast<cudaStream_t>(native.get()), &Gate::hold, this));
  }
  ~Gate() {
    open();
    stream_.synchronize();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { open_ = true; }
  [[nodiscard]] bool late() const { return late_; }

 private:
  static void hold(void* self) {
    Gate& gate = *static_cast<Gate*>(self);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!gate.open_) {
      if (std::chrono::steady_clock::now() > end) {
        gate.late_ = true;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  Stream& stream_;
  std::atomic<bool> open_{false}, late_{false};
};

}  // namespace braid::test
