#include "cpu/runtime/pool.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <braid/core/device.hpp>
#include <braid/core/error.hpp>

#include "cpu/runtime/cpu_stream.hpp"
#include "cpu/runtime/parallel.hpp"

namespace braid::cpu {

namespace {

constexpr std::uint32_t kOpen = 1u << 31;
constexpr std::chrono::microseconds kSpin{20};

constinit thread_local bool t_inside = false;  // a tile is running on this thread
constinit thread_local bool t_pinned = false;

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until the word differs from `old`: spins for a while, then sleeps. Returns the new value.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                              bool spin) noexcept {
  std::uint32_t now = word.load(std::memory_order_acquire);
  if (spin && now == old) {
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 16; ++i) {
        now = word.load(std::memory_order_acquire);
        if (now != old) return now;
        pause();
      }
    } while (std::chrono::steady_clock::now() < deadline);
  }
  while (now == old) {
    word.wait(old, std::memory_order_acquire);
    now = word.load(std::memory_order_acquire);
  }
  return now;
}

}  // namespace

Pool::~Pool() { stop_helpers(); }

void Pool::stop_helpers() noexcept {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  helpers_.clear();  // joins
  stop_.store(false, std::memory_order_relaxed);
}

void Pool::resize(int threads) noexcept {
  stop_helpers();
  // set even if the system cannot create the threads: a retry at every call would not help
  size_ = threads;
  try {
    shares_ = std::make_unique<Share[]>(static_cast<std::size_t>(threads));
    helpers_.reserve(static_cast<std::size_t>(threads - 1));
    for (int i = 1; i < threads; ++i)
      helpers_.emplace_back([this, i, seen = epoch_.load(), threads] { help(i, seen, threads); });
  } catch (...) {  // fewer helpers: the caller and the existing ones do the work
  }
}

void Pool::help(int index, std::uint32_t seen, int threads) noexcept {
  t_inside = true;  // a parallel_for within a tile runs inline
  if (pinning_.on()) Pinning::bind(pinning_.core_of(device_, index, threads));
  const bool spin = spin_worthwhile(threads);
  for (;;) {
    seen = wait_for_change(epoch_, seen, spin);
    if (stop_.load(std::memory_order_relaxed)) return;
    std::uint32_t gate = gate_.load(std::memory_order_relaxed);
    while ((gate & kOpen) != 0) {
      if (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire,
                                       std::memory_order_relaxed))
        continue;
      work(index);
      // the gate is closed and this was the last helper inside: the caller may be asleep
      if (gate_.fetch_sub(1, std::memory_order_release) == 1) gate_.notify_one();
      break;
    }
  }
}

void Pool::work(int index) noexcept {
  for (int i = 0; i < shares_in_use_; ++i) {
    Share& share = shares_[static_cast<std::size_t>((index + i) % shares_in_use_)];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      if (failed_.load(std::memory_order_relaxed)) return;
      const std::int64_t tile = share.next.fetch_add(1, std::memory_order_relaxed);
      if (tile >= share.end) break;
      try {
        fn_(context_, tile);
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
        return;
      }
    }
  }
}

void Pool::run(int threads, std::int64_t tiles, void (*fn)(void*, std::int64_t), void* context) {
  if (threads <= 1 || tiles <= 1 || t_inside || busy_.exchange(true, std::memory_order_acquire)) {
    for (std::int64_t i = 0; i < tiles; ++i) fn(context, i);
    return;
  }
  if (threads != size_) resize(threads);
  if (helpers_.empty()) {
    busy_.store(false, std::memory_order_release);
    for (std::int64_t i = 0; i < tiles; ++i) fn(context, i);
    return;
  }
  const int shares = static_cast<int>(
      std::min<std::int64_t>(static_cast<std::int64_t>(helpers_.size()) + 1, tiles));
  fn_ = fn;
  context_ = context;
  shares_in_use_ = shares;
  for (int i = 0; i < shares; ++i) {
    Share& share = shares_[static_cast<std::size_t>(i)];
    // not tiles * i: it could overflow
    const std::int64_t quotient = tiles / shares, rest = tiles % shares;
    share.next.store(quotient * i + std::min<std::int64_t>(i, rest), std::memory_order_relaxed);
    share.end = quotient * (i + 1) + std::min<std::int64_t>(i + 1, rest);
  }
  failed_.store(false, std::memory_order_relaxed);
  gate_.store(kOpen, std::memory_order_release);
  epoch_.fetch_add(1);
  if (shares - 1 < static_cast<int>(helpers_.size())) {
    for (int i = 1; i < shares; ++i) epoch_.notify_one();
  } else {
    epoch_.notify_all();
  }
  t_inside = true;
  work(0);
  t_inside = false;
  std::uint32_t inside = gate_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  while (inside != 0) inside = wait_for_change(gate_, inside, spin_worthwhile(threads));
  std::exception_ptr error = std::exchange(error_, nullptr);
  busy_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(std::move(error));
}

void Pool::pin_caller(int threads) const noexcept {
  if (!pinning_.on() || t_pinned || t_inside) return;
  t_pinned = true;
  Pinning::bind(pinning_.core_of(device_, 0, threads));
}

void parallel_for(Stream& stream, std::int64_t tiles, void (*fn)(void*, std::int64_t),
                  void* context) {
  Pool& pool = static_cast<CpuStream&>(stream).pool();
  const int threads = num_threads();
  pool.pin_caller(threads);
  pool.run(threads, tiles, fn, context);
}

}  // namespace braid::cpu
