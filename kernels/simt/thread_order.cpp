#include "simt/thread_order.hpp"

#include <algorithm>

namespace braid::simt {

namespace {
void join(ThreadOrder::Clock& to, const ThreadOrder::Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}
}  // namespace

void ThreadOrder::start(unsigned threads, std::uint32_t tick) {
  if (active_) return;
  active_ = true;
  start_ = tick;
  clocks_.assign(threads, Clock(threads));
  words_.clear();
}

void ThreadOrder::release(unsigned t, std::uint32_t tick, Clock& clock) const {
  join(clock, clocks_[t]);
  clock[t] = tick;
}

void ThreadOrder::acquire(unsigned t, const Clock& clock) { join(clocks_[t], clock); }

void ThreadOrder::warp_barrier(unsigned warp, unsigned mask, std::uint32_t tick) {
  Clock all;
  const auto threads = static_cast<unsigned>(clocks_.size());
  for (unsigned t = 32 * warp; t < std::min(threads, 32 * warp + 32); ++t)
    if (mask >> t % 32 & 1) release(t, tick, all);
  for (unsigned t = 32 * warp; t < std::min(threads, 32 * warp + 32); ++t)
    if (mask >> t % 32 & 1) acquire(t, all);
}

const ThreadOrder::Use* ThreadOrder::access(const void* cell, const Use& use,
                                            std::uint32_t barrier) {
  std::vector<Use>& uses = words_[cell];
  for (const Use& old : uses) {
    const bool conflict = (old.bytes & use.bytes) != 0 &&
                          !(reads_only(old.mode) && reads_only(use.mode)) &&
                          !(is_atomic(old.mode) && is_atomic(use.mode));
    if (conflict && old.tick >= barrier && !knows(use.thread, old.thread, old.tick)) return &old;
  }
  // What is ordered before a write need not be kept: who is ordered after the write is after that.
  std::erase_if(uses, [&](const Use& old) {
    if (old.tick < barrier) return true;
    if ((old.bytes & ~use.bytes) != 0) return false;
    if (old.thread == use.thread && old.mode == use.mode) return true;
    return use.mode == Access::write;
  });
  uses.push_back(use);
  return nullptr;
}

}  // namespace braid::simt
