#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace braid::simt {

/// The order between the blocks of one grid. Blocks are not ordered, except through a fence and an
/// atomic: what a thread wrote before its __threadfence is visible to whoever later sees an atomic
/// that the thread (or, after a barrier, its block) did after the fence. So a "last block" that
/// counts itself in with an atomic may read what the other blocks wrote before they did; without
/// the fence it may not.
///
/// Costs nothing in a grid without __threadfence.
class BlockOrder {
 public:
  void grid_begin();
  /// `tick` is the first of the block.
  void block_begin(std::uint32_t tick);
  /// Thread t fences; all that it did has a smaller tick. `barrier` is the tick of the block's last
  /// barrier.
  void fence(unsigned t, std::uint32_t tick, std::uint32_t barrier);
  void warp_barrier(unsigned warp, std::uint32_t tick) {
    if (active_) warp_tick_[warp] = tick;
  }
  void atomic(const void* address, unsigned t, std::uint32_t tick, std::uint32_t barrier);
  [[nodiscard]] bool active() const noexcept { return active_; }

  /// True if what thread `writer` of an earlier block did at `then` is visible to thread t of the
  /// running block. A `writer` of kAnyThread must have published with a barrier between.
  [[nodiscard]] bool ordered(std::uint32_t then, unsigned writer, unsigned t,
                             std::uint32_t barrier) const;
  /// True if that holds for all earlier blocks of the grid, whatever they did before they counted
  /// themselves in.
  [[nodiscard]] bool all_ordered(unsigned t, std::uint32_t barrier) const;
  static constexpr unsigned kAnyThread = ~0u;

 private:
  struct Fence {
    unsigned thread;
    std::uint32_t tick, barrier;
  };
  // An atomic after which others may see what its block fenced before.
  struct Release {
    std::uint32_t block;
    unsigned thread;
    std::uint32_t tick, barrier, warp_tick;
    std::size_t acquired;  // of the block's own acquisitions, at that time
  };
  struct Variable {
    std::vector<Release> releases;
  };
  // An atomic that saw the first `count` releases of a variable.
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
