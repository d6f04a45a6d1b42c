#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "simt/symbols.hpp"

namespace braid::simt {

/// What an access does. `acquire` and `release`: load_acquire and store_release.
enum class Access : std::uint8_t { read, write, atomic, acquire, release };
[[nodiscard]] constexpr bool reads_only(Access a) noexcept {
  return a == Access::read || a == Access::acquire;
}
[[nodiscard]] constexpr bool is_atomic(Access a) noexcept { return a >= Access::atomic; }

/// The ordering between the threads of one block that barriers of some of them make: named barriers
/// and mbarriers. Every thread has a vector clock, and every access is recorded (FastTrack, PLDI
/// 2009, with a list of readers). Blocks without such barriers have no cost.
class ThreadOrder {
 public:
  /// Of each thread: the tick up to which its accesses are known.
  using Clock = std::vector<std::uint32_t>;
  /// An access to a word.
  struct Use {
    std::uint32_t tick;
    std::uint16_t thread;
    std::uint8_t bytes;  // a mask
    Access mode;
    Site site;
  };

  void block_begin() noexcept { active_ = false; }
  /// Begins to record, if it does not yet. The accesses so far have smaller ticks.
  void start(unsigned threads, std::uint32_t tick);
  /// Adds to `clock` what thread t did up to `tick` and what it knows. What it does next must have
  /// larger ticks.
  void release(unsigned t, std::uint32_t tick, Clock& clock) const;
  void acquire(unsigned t, const Clock& clock);
  /// The lanes of `mask` learn what each of them knows and did up to `tick`.
  void warp_barrier(unsigned warp, unsigned mask, std::uint32_t tick);
  [[nodiscard]] bool active() const noexcept { return active_; }
  /// Returns true if an access of `other` at `then` is ordered before what thread t does now.
  /// Accesses before start() by several threads are not known one by one: they count as ordered.
  [[nodiscard]] bool knows(unsigned t, unsigned other, std::uint32_t then) const noexcept {
    return t == other || then <= clocks_[t][other];
  }
  [[nodiscard]] bool recorded(std::uint32_t tick) const noexcept { return tick >= start_; }

  /// Records an access to the word of a cell. Returns an access of another thread that is not
  /// ordered before it, where one of them is a write and not both are atomic; otherwise nullptr.
  /// Accesses before `barrier`, the tick of the block's last barrier, are ordered.
  [[nodiscard]] const Use* access(const void* cell, const Use& use, std::uint32_t barrier);

 private:
  bool active_ = false;
  std::uint32_t start_ = 0;
  std::vector<Clock> clocks_;
  std::unordered_map<const void*, std::vector<Use>> words_;
};

}  // namespace braid::simt
