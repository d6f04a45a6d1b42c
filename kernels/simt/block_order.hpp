#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace braid::simt {

/// The ordering between the blocks of one grid. Blocks are unordered, except through a fence and an
/// atomic. Suppose that a thread writes, calls __threadfence, and then it (or, after a barrier,
/// another thread of its block) performs an atomic. The writes are then visible to any thread that
/// later observes this atomic. So a block that learns from an atomic counter that it is the last
/// one may read what the other blocks wrote before they incremented the counter. Without the fence
/// it may not. A store_release is a fence and an atomic that observes nothing; a load_acquire is an
/// atomic that publishes nothing. A load counts as observing every earlier atomic on the word.
///
/// The blocks run one after the other, so memory always holds the newest value. The stored values
/// of a word are kept, so that a load can return an older one, as it can on a GPU.
///
/// Has no cost in a grid without __threadfence and store_release.
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
  /// Records the atomic of a store_release, after its fence. `before`: the value that it replaces.
  void store(const void* address, std::size_t bytes, std::uint64_t before, unsigned t,
             std::uint32_t tick, std::uint32_t barrier);
  /// Records a load_acquire of a word whose newest value is `value`. Returns the value that it
  /// observes: `older` stores before the newest, or fewer. A store of the running block, one that
  /// the thread has observed, or one that is ordered before the load is never overlooked.
  std::uint64_t load(const void* address, std::size_t bytes, std::uint64_t value, unsigned older,
                     unsigned t, std::uint32_t tick, std::uint32_t barrier);
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
    std::uint32_t tick, barrier, warp_tick;
  };
  // An atomic that makes visible what its block did before its fences.
  struct Release {
    std::uint32_t block;
    unsigned thread;
    std::uint32_t tick, barrier, warp_tick;
    std::size_t acquired;  // how many acquisitions the block had at that time
  };
  struct Store {
    std::uint64_t before;
    std::size_t bytes, releases;  // how many releases came before it
    std::uint32_t block, tick;
    unsigned thread;
  };
  struct Variable {
    std::vector<Release> releases;
    std::vector<Store> stores;
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
    bool announced = false;  // an atomic has made the last fence visible
  };
  void acquire(const Variable& variable, std::size_t count, unsigned t, std::uint32_t tick,
               std::uint32_t barrier);
  void release(Variable& variable, unsigned t, std::uint32_t tick, std::uint32_t barrier);
  [[nodiscard]] bool knows(const Store& store, unsigned t, std::uint32_t barrier) const;
  [[nodiscard]] std::uint32_t block_of(std::uint32_t tick) const;
  [[nodiscard]] bool publishes(const Release& release, std::uint32_t then, unsigned writer) const;
  [[nodiscard]] bool visible(const Acquisition& a, unsigned t, std::uint32_t barrier) const;
  using Seen = std::unordered_map<const Variable*, std::size_t>;
  [[nodiscard]] bool reaches(const Acquisition& start, std::uint32_t block, std::uint32_t then,
                             unsigned writer, Seen& seen) const;

  bool active_ = false;  // there has been a fence or a store_release in this grid
  std::vector<Block> blocks_;
  std::uint32_t warp_tick_[32] = {};
  std::unordered_map<const void*, Variable> variables_;
  // the latest acquisition of a variable by a thread of the running block
  std::map<std::pair<const Variable*, unsigned>, std::size_t> latest_;
};

}  // namespace braid::simt
