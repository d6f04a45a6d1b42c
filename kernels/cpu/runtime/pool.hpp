#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "cpu/runtime/pinning.hpp"

namespace braid::cpu {

/// The threads of one logical CPU device: the thread that calls, and helpers that wait for work,
/// spinning for some 20 µs and then asleep. The caller never waits for a helper that has not begun:
/// it takes the tiles itself. So a late, descheduled or forked-away helper costs speed only.
class Pool {
 public:
  /// `pinning` must outlive the pool. Helpers are made at the first need.
  Pool(int device, const Pinning& pinning) noexcept : device_(device), pinning_(pinning) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// See parallel_for. `threads` counts the caller.
  void run(int threads, std::int64_t tiles, void (*fn)(void* context, std::int64_t tile),
           void* context);

  /// With BRAID_PIN=1 binds the calling thread, the first time it computes for a device, to that
  /// device's first core.
  void pin_caller(int threads) const noexcept;

 private:
  // Tiles [next, end) of one thread's share; others take from it when theirs are done.
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
  std::atomic<bool> busy_{false};  // a caller has the helpers

  // The job; written by the caller while the gate is closed and empty.
  void (*fn_)(void*, std::int64_t) = nullptr;
  void* context_ = nullptr;
  int shares_in_use_ = 0;
  std::unique_ptr<Share[]> shares_;
  std::exception_ptr error_;

  alignas(64) std::atomic<bool> failed_{false};
  alignas(64) std::atomic<std::uint32_t> gate_{0};   // kOpen + the number of helpers inside
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // grows when there is something to do
  std::atomic<bool> stop_{false};
  int size_ = 1;  // threads, the caller included; guarded by busy_
  std::vector<std::jthread> helpers_;
};

}  // namespace braid::cpu
