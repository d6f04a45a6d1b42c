#include "simt/block_order.hpp"

#include <algorithm>
#include <set>

namespace braid::simt {

void BlockOrder::grid_begin() {
  active_ = false;
  blocks_.clear();
  variables_.clear();
  latest_.clear();
}

void BlockOrder::block_begin(std::uint32_t tick) {
  blocks_.emplace_back().tick = tick;
  std::fill(std::begin(warp_tick_), std::end(warp_tick_), tick);
  if (!latest_.empty()) latest_.clear();
}

void BlockOrder::fence(unsigned t, std::uint32_t tick, std::uint32_t barrier) {
  if (!active_) {  // warp barriers before the first fence are not known: there may have been some
    active_ = true;
    std::fill(std::begin(warp_tick_), std::end(warp_tick_), tick);
  }
  Block& block = blocks_.back();
  const Fence fence{t, tick, barrier, warp_tick_[t / 32]};
  auto& fences = block.fences;
  if (!fences.empty() && !block.announced && fences.back().thread == t &&
      fences.back().barrier == barrier)
    fences.back() = fence;
  else fences.push_back(fence);
  block.announced = false;
}

void BlockOrder::atomic(const void* address, unsigned t, std::uint32_t tick,
                        std::uint32_t barrier) {
  if (!active_) return;
  Variable& variable = variables_[address];
  acquire(variable, variable.releases.size(), t, tick, barrier);
  release(variable, t, tick, barrier);
}

void BlockOrder::acquire(const Variable& variable, std::size_t count, unsigned t,
                         std::uint32_t tick, std::uint32_t barrier) {
  if (count == 0) return;
  auto& acquired = blocks_.back().acquired;
  const auto [latest, first] = latest_.try_emplace({&variable, t}, acquired.size());
  if (!first) {
    Acquisition& last = acquired[latest->second];
    if (last.tick >= barrier || last.count >= count) {
      last.count = std::max(last.count, count);
      return;
    }
    latest->second = acquired.size();
  }
  acquired.push_back({&variable, count, t, tick});
}

void BlockOrder::release(Variable& variable, unsigned t, std::uint32_t tick,
                         std::uint32_t barrier) {
  Block& block = blocks_.back();
  if (block.fences.empty()) return;
  block.announced = true;
  variable.releases.push_back({static_cast<std::uint32_t>(blocks_.size() - 1), t, tick, barrier,
                               warp_tick_[t / 32], block.acquired.size()});
}

void BlockOrder::store(const void* address, std::size_t bytes, std::uint64_t before, unsigned t,
                       std::uint32_t tick, std::uint32_t barrier) {
  Variable& variable = variables_[address];
  variable.stores.push_back({before, bytes, variable.releases.size(),
                             static_cast<std::uint32_t>(blocks_.size() - 1), tick, t});
  release(variable, t, tick, barrier);
}

std::uint64_t BlockOrder::load(const void* address, std::size_t bytes, std::uint64_t value,
                               unsigned older, unsigned t, std::uint32_t tick,
                               std::uint32_t barrier) {
  if (!active_) return value;
  const auto found = variables_.find(address);
  if (found == variables_.end()) return value;
  const Variable& variable = found->second;
  std::size_t count = variable.releases.size(), stores = variable.stores.size();
  for (; older > 0 && stores > 0 && variable.stores[stores - 1].bytes == bytes &&
         !knows(variable.stores[stores - 1], t, barrier);
       --older) {
    --stores;
    value = variable.stores[stores].before;
    count = variable.stores[stores].releases;
  }
  acquire(variable, count, t, tick, barrier);
  return value;
}

// Returns true if thread t may not overlook a store: its block made it, or it is ordered before
// what the thread does now, as one that the thread has observed.
bool BlockOrder::knows(const Store& store, unsigned t, std::uint32_t barrier) const {
  return store.block + 1 == blocks_.size() ||
         ordered(store.tick - 1, store.thread, t, barrier);  // the store is before its own fence
}

std::uint32_t BlockOrder::block_of(std::uint32_t tick) const {
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), tick,
                                      [](std::uint32_t x, const Block& b) { return x < b.tick; });
  return static_cast<std::uint32_t>(after - blocks_.begin()) - 1;
}

bool BlockOrder::publishes(const Release& release, std::uint32_t then, unsigned writer) const {
  const auto& fences = blocks_[release.block].fences;
  for (auto f = fences.rbegin(); f != fences.rend(); ++f) {  // the latest publishes most
    const Fence& fence = *f;
    if (fence.tick > release.tick) continue;
    const bool carried =
        fence.thread == release.thread || fence.tick <= release.barrier ||
        // a warp barrier orders the fence before the atomic
        (fence.thread / 32 == release.thread / 32 && fence.tick <= release.warp_tick);
    if (!carried) continue;
    // everything that the block did before the barrier that precedes the fence
    if (then < fence.barrier) return true;
    if (fence.thread == writer && then < fence.tick) return true;  // the fencing thread's own
    if (fence.thread / 32 == writer / 32 && then < fence.warp_tick) return true;
  }
  return false;
}

bool BlockOrder::visible(const Acquisition& a, unsigned t, std::uint32_t barrier) const {
  return a.thread == t || a.tick < barrier ||
         (a.thread / 32 == t / 32 && a.tick < warp_tick_[t / 32]);
}

// Uses a work list instead of recursion: a chain over many variables would overflow a fiber's
// stack.
bool BlockOrder::reaches(const Acquisition& start, std::uint32_t block, std::uint32_t then,
                         unsigned writer, Seen& seen) const {
  std::vector<const Acquisition*> left{&start};
  while (!left.empty()) {
    const Acquisition& a = *left.back();
    left.pop_back();
    std::size_t& done = seen[a.variable];
    if (done >= a.count) continue;
    const std::size_t from = std::exchange(done, a.count);
    const auto& releases = a.variable->releases;
    const auto first =
        std::lower_bound(releases.begin(), releases.end(), block,
                         [](const Release& r, std::uint32_t b) { return r.block < b; });
    for (auto r = first; r != releases.end() && r->block == block &&
                         r < releases.begin() + static_cast<std::ptrdiff_t>(a.count);
         ++r)
      if (publishes(*r, then, writer)) return true;
    for (std::size_t i = from; i < a.count; ++i)  // through another block
      for (std::size_t j = 0; j < releases[i].acquired; ++j) {
        const Acquisition& next = blocks_[releases[i].block].acquired[j];
        const auto known = seen.find(next.variable);
        if (known == seen.end() || known->second < next.count) left.push_back(&next);
      }
  }
  return false;
}

bool BlockOrder::ordered(std::uint32_t then, unsigned writer, unsigned t,
                         std::uint32_t barrier) const {
  if (!active_) return false;
  const std::uint32_t block = block_of(then);
  Seen seen;
  for (const Acquisition& a : blocks_.back().acquired)
    if (visible(a, t, barrier) && reaches(a, block, then, writer, seen)) return true;
  return false;
}

bool BlockOrder::all_ordered(unsigned t, std::uint32_t barrier) const {
  if (!active_) return false;
  std::set<std::uint32_t> counted;
  for (const Acquisition& a : blocks_.back().acquired)
    if (visible(a, t, barrier))
      for (std::size_t i = 0; i < a.count; ++i) counted.insert(a.variable->releases[i].block);
  counted.erase(static_cast<std::uint32_t>(blocks_.size() - 1));
  return counted.size() + 1 >= blocks_.size();
}

}  // namespace braid::simt
