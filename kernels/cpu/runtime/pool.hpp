#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "cpu/runtime/pinning.hpp"

namespace braid::cpu {

/// The threads of one logical CPU device: the calling thread, and helpers that wait for work,
/// spinning for 20 µs before they sleep. The caller never waits for a helper that has not started:
/// it runs the tiles itself. So a helper that is late, descheduled or lost in a fork costs only
/// speed.
class Pool {
 public:
  /// `pinning` must outlive the pool. Helpers are created when they are first needed.
  Pool(int device, const Pinning& pinning) noexcept : device_(device), pinning_(pinning) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// See parallel_for. `threads` counts the caller.
  void run(int threads, std::int64_t tiles, void (*fn)(void* context, std::int64_t tile),
           void* context);

  /// If BRAID_PIN=1, binds the calling thread to this device's first core, the first time that the
  /// thread computes for any device.
  void pin_caller(int threads) const noexcept;

 private:
  // Tiles [next, end) of one thread's share; other threads take tiles from it when theirs are done.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  void resize(int threads) noexcept;
  void stop_helpers() noexcept;
  void help(int index, std::uint32_t seen, int threads) noexcept;
  void work(int index) noexcept;
  bool spin_worthwhile(int threads) const noexcept {
    return threads * pinning_.devices() <= pinning_.cores();
  }

  const int device_;
  const Pinning& pinning_;
  std::atomic<bool> busy_{false};  // a caller is using the helpers

  // The job. The caller writes it while the gate is closed and no helper is inside.
  void (*fn_)(void*, std::int64_t) = nullptr;
  void* context_ = nullptr;
  int shares_in_use_ = 0;
  std::unique_ptr<Share[]> shares_;
  std::exception_ptr error_;

  alignas(64) std::atomic<bool> failed_{false};
  alignas(64) std::atomic<std::uint32_t> gate_{0};   // kOpen + the number of helpers inside
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // incremented when there is work
  std::atomic<bool> stop_{false};
  int size_ = 1;  // threads, the caller included; guarded by busy_
  std::vector<std::jthread> helpers_;
};

}  // namespace braid::cpu
