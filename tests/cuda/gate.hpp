#pragma once
#include <atomic>
#include <chrono>
#include <thread>

#include <braid/core/error.hpp>
#include <braid/kernels/cuda_native.hpp>

#include "simt/cuda_runtime.hpp"

namespace braid::test {

inline void queue(Stream& stream, void (*function)(void*), void* data) {
  const cuda::NativeStream native("queue", stream);
  native.check(cudaLaunchHostFunc(static_cast<cudaStream_t>(native.get()), function, data));
}

/// Delays the work that is queued on the stream after this call, so that a reader that does not
/// wait for the stream reads old values.
inline void delay(Stream& stream) {
  const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  queue(stream, sleep, nullptr);
}

/// Blocks a stream until open(). The test must not wait for work queued after the gate while it is
/// closed. After 20 seconds the gate opens itself and late() returns true.
class Gate {
 public:
  explicit Gate(Stream& stream) : stream_(stream) { queue(stream, &Gate::hold, this); }
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
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!gate.open_ && !gate.late_) {
      gate.late_ = std::chrono::steady_clock::now() > end;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  Stream& stream_;
  std::atomic<bool> open_{false}, late_{false};
};

}  // namespace braid::test
