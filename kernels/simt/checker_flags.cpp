// store_release and load_acquire: flags between blocks and between threads of a block.
#include <algorithm>
#include <cstring>

#include "simt/checker.hpp"
#include "simt/scheduler.hpp"

namespace braid::simt {

namespace {

constexpr std::size_t kMostAcquires = 8;  // that are kept for a word

std::uint64_t value_at(const void* p, std::size_t bytes) {
  if (bytes == 8) return __atomic_load_n(static_cast<const std::uint64_t*>(p), __ATOMIC_ACQUIRE);
  return __atomic_load_n(static_cast<const std::uint32_t*>(p), __ATOMIC_ACQUIRE);
}

}  // namespace

void Checker::require_global(const char* call, const char* a, Site site) {
  if (last_->holds(a) && last_->shared())
    report(Finding::invalid_address, last_, site,
           [&] { return str(call, ": expected global memory, got ", describe(*last_, a)); });
}

std::uint64_t Checker::load_acquire(const void* p, std::size_t bytes, Site site) {
  access(p, bytes, Access::acquire, site);
  require_global("load_acquire", static_cast<const char*>(p), site);
  unsigned older = 0;
  while (scheduler_->overlooks_a_store()) ++older;
  const std::uint64_t value =
      blocks_.load(p, bytes, value_at(p, bytes), older, thread_, tick_, barrier_tick_);
  const auto flag = flags_.find(p);
  if (flag == flags_.end()) return value;
  // A flag between threads of the block orders them, as an mbarrier does. Most kernels have none:
  // the order of single threads is recorded only from here on.
  if (!threads_.active()) {
    const ThreadOrder::Clock& clock = flag->second;
    bool news = false;
    for (std::size_t t = 0; t < clock.size(); ++t)
      news |= t != thread_ && clock[t] >= barrier_tick_;
    if (!news) return value;
    start_thread_order(static_cast<unsigned>(clock.size()));
  }
  acquire(thread_, flag->second);
  return value;
}

void Checker::store_release(const void* p, std::size_t bytes, Site site) {
  access(p, bytes, Access::release, site);
  require_global("store_release", static_cast<const char*>(p), site);
  fence();
  blocks_.store(p, bytes, value_at(p, bytes), thread_, tick_, barrier_tick_);
  ThreadOrder::Clock& clock = flags_[p];
  const std::uint32_t before = tick_ - 1;  // what this thread does next has a larger tick
  if (threads_.active()) {
    threads_.release(thread_, before, clock);
    return;
  }
  clock.resize(scheduler_->threads_of_block());
  clock[thread_] = before;
  // Lanes that it has met count as known up to now: a missed race is better than a false one.
  const unsigned w = thread_ / 32;
  for (unsigned lane = 0; lane < 32 && 32 * w + lane < clock.size(); ++lane)
    if (clock_[w][thread_ % 32][lane] != 0) clock[32 * w + lane] = before;
}

// Records a load_acquire of a word: a plain write must be ordered after it.
void Checker::note_acquire(Cell& c, unsigned mask, Site site) {
  const Acquire use{tick_, me(), now(), static_cast<std::uint8_t>(mask), site};
  std::vector<Acquire>& known = acquires_[&c];
  for (Acquire& other : known)
    if (other.who == use.who && other.tick >= block_tick_) {
      other = use;
      return;
    }
  if (known.size() == kMostAcquires) known.erase(known.begin());
  known.push_back(use);
}

// Checks a plain write against the loads with load_acquire.
void Checker::check_acquires(Region& r, Cell& c, unsigned mask, const char* a, Site site) {
  const auto found = acquires_.find(&c);
  if (found == acquires_.end()) return;
  for (const Acquire& other : found->second) {
    if ((other.bytes & mask) == 0) continue;
    const bool here = other.tick >= block_tick_;
    if (here && other.tick < barrier_tick_) continue;
    const bool fine = here ? ordered(other.who, other.clock, 0, other.tick)
                           : blocks_.ordered(other.tick, other.who - 1u, thread_, barrier_tick_);
    if (!fine)
      leave_after([&] {
        note_race(r, a, Access::write, site, here ? other.who : kMany,
                  here ? "read with load_acquire" : "of another block read with load_acquire",
                  other.site, here ? "with no barrier in between" : kNoBlockOrder);
      });
  }
}

}  // namespace braid::simt
