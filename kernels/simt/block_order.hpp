#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace braid::simt {

/// The ordering between the blocks of one grid. Blocks are unordered, except through a fence and an
/// atomic. Suppose that a thread writes, calls __threadfence, and then it (or, after a barrier,
/// another thread of its block) performs an atomic. The writes are then visible to any thread that
/// later observes this atomic. So a block that learns from an atomic counter that it is the last
/// one may read what the other blocks wrote before they incremented the counter. Without the fence
/// it may not.
///
/// Has no cost in a grid without __threadfence.
class BlockOrder {
 public:
  void grid_begin();
  /// `tick` is the block's first tick.
  void block_begin(std::uint32_t tick);
  /// Records a fence of thread t. Everything that the thread did before has a smaller tick.
  /// `barrier` is the tick of the block's last barrier.
  void fence(unsigned t, std::uint32_t tick, std::uint32_t barrier);
  void warp_barrier(unsigned warp, std::uint32_t tick) {
    if (active_) warp_tick_[warp] = tick;
  }
  void atomic(const void* address, unsigned t, std::uint32_t tick, std::uint32_t barrier);
  [[nodiscard]] bool active() const noexcept { return active_; }

  /// Returns true if what thread `writer` of an earlier block did at `then` is visible to thread t
  /// of the running block. If `writer` is kAnyThread, a barrier before the fence is required.
  [[nodiscard]] bool ordered(std::uint32_t then, unsigned writer, unsigned t,
                             std::uint32_t barrier) const;
  /// Returns true if everything that all earlier blocks of the grid did before their atomics is
  /// visible.
  [[nodiscard]] bool all_ordered(unsigned t, std::uint32_t barrier) const;
  static constexpr unsigned kAnyThread = ~0u;

 private:
  struct Fence {
    unsigned thread;
    std::uint32_t tick, barrier;
  };
  // An atomic that makes visible what its block did before its fences.
  struct Release {
    std::uint32_t block;
    unsigned thread;
    std::uint32_t tick, barrier, warp_tick;
    std::size_t acquired;  // how many acquisitions the block had at that time
  };
  struct Variable {
    std::vector<Release> releases;
  };
  // An atomic that observed the first `count` releases of a variable.
  struct Acquisition {
    const Variable* variable;
    std::size_t count;
    unsigned thread;
    std::uint32_t tick;
  };
  struct Block {
    std::uint32_t tick = 0;
    std::vector<Fence> fences;
    std::vector<Acquisition> acquired;
  };
  [[nodiscard]] std::uint32_t block_of(std::uint32_t tick) const;
  [[nodiscard]] bool publishes(const Release& release, std::uint32_t then, unsigned writer) const;
  [[nodiscard]] bool visible(const Acquisition& a, unsigned t, std::uint32_t barrier) const;
  using Seen = std::unordered_map<const Variable*, std::size_t>;
  [[nodiscard]] bool reaches(const Acquisition& start, std::uint32_t block, std::uint32_t then,
                             unsigned writer, Seen& seen) const;

  bool active_ = false;  // there has been a fence in this grid
  std::vector<Block> blocks_;
  std::uint32_t warp_tick_[32] = {};
  std::unordered_map<const void*, Variable> variables_;
};

}  // namespace braid::simt
