// Named barriers and mbarriers: a thread that waits is a fiber that lets others run. The lanes of a
// warp arrive at a named barrier together, so each waits for the others of its warp.
#include "simt/block_sync.hpp"

#include <algorithm>
#include <utility>

#include "simt/checker.hpp"
#include "simt/scheduler.hpp"

namespace braid::simt {

void BlockSync::clear() {
  named.fill({});
  mbarriers.clear();
  used = false;
}

void Scheduler::start_sync() {
  sync_.used = true;
  if (checker_) checker_->start_thread_order(count_);
}

void Scheduler::wait_at_some_barrier(int barrier, Location where) {
  Thread& me = *current_;
  me.where = where;
  me.mask = 0;
  me.barrier = barrier;
  me.state = State::at_some_barrier;
  wait();
}

void Scheduler::release_waiting(std::vector<Thread*>& waiting, const ThreadOrder::Clock& clock) {
  if ((effort_ += waiting.size() + 1) > config_.progress_limit)
    fail_without_progress(current_->where);
  for (Thread* thread : waiting) {
    if (checker_) checker_->acquire(thread->index, clock);
    if (thread != current_) make_ready(*thread);
  }
  waiting.clear();
}

// Called when a thread returns.
void Scheduler::check_sync_at_end() {
  const unsigned warp = current_->index / 32;
  for (std::size_t id = 1; id < sync_.named.size(); ++id)
    if (const BlockSync::Named& barrier = sync_.named[id]; barrier.lanes[warp] != 0)
      fail(Finding::divergent_barrier, barrier.where[warp], [&] {
        return str("returned, while other lanes of its warp are at the named barrier ", id);
      });
  if (live_ != 0) return;
  for (const auto& [address, barrier] : sync_.mbarriers)
    if (!barrier.copies.empty())
      fail(Finding::async_copy, barrier.copies.front().second.where,
           "returned with a cp.async whose mbarrier did not end its phase, issued");
}

void Scheduler::named_barrier(int id, int threads, bool waits, Location where) {
  start_sync();
  const auto refuse = [&](const auto& what) {
    fail(Finding::divergent_barrier, where,
         [&] { return str("named barrier ", id, ": ", what()); });
  };
  if (id < 1 || id > 15) refuse([] { return std::string("expected an id from 1 to 15"); });
  const int most = 32 * static_cast<int>(warps_.size());
  if (threads < 32 || threads > most || threads % 32 != 0)
    refuse([&] {
      return str("expected a multiple of 32 threads, at most the ", most, " of the block, got ",
                 threads);
    });
  BlockSync::Named& barrier = sync_.named[static_cast<std::size_t>(id)];
  if (barrier.threads == 0) barrier.threads = threads;
  if (barrier.threads != threads)
    refuse([&] {
      return str("expected ", barrier.threads, " threads, as the first caller did, got ", threads);
    });
  const unsigned warp = current_->index / 32, lane = 1u << current_->index % 32;
  unsigned& lanes = barrier.lanes[warp];
  if (warps_[warp].done != 0)
    refuse([] { return std::string("lanes of the warp have already returned"); });
  if ((lanes & lane) != 0)
    refuse([] { return std::string("called again before all lanes of the warp have arrived"); });
  if ((barrier.warps >> warp & 1) != 0)
    refuse([] { return std::string("the warp has arrived twice"); });
  if (lanes != 0 && barrier.where[warp].line != where.line)
    fail(
        Finding::divergent_barrier, where,
        [&] { return str("named barrier ", id, ": other lanes of the warp are at another call,"); },
        barrier.where[warp]);
  lanes |= lane;
  barrier.where[warp] = where;
  if (lanes != warps_[warp].lanes) {  // the last lane goes on for all
    wait_at_some_barrier(id, where);
    return;
  }
  lanes = 0;
  barrier.warps |= 1u << warp;
  barrier.arrived += 32;
  for (unsigned t = 32 * warp; t < std::min(count_, 32 * warp + 32); ++t) {
    Thread& thread = threads_[t];
    if (checker_) checker_->release(t, barrier.clock);
    if (waits) barrier.waiting.push_back(&thread);
    else if (&thread != current_) make_ready(thread);
  }
  if (barrier.arrived < threads) {
    if (waits) wait_at_some_barrier(id, where);
    return;
  }
  barrier.threads = barrier.arrived = 0;
  barrier.warps = 0;
  release_waiting(barrier.waiting, std::exchange(barrier.clock, {}));
}

BlockSync::Mbarrier& Scheduler::mbarrier_at(std::uint64_t* barrier, const char* call,
                                            Location where) {
  const auto found = sync_.mbarriers.find(barrier);
  if (found == sync_.mbarriers.end())
    fail(Finding::uninitialised, where, [&] {
      return str(call, ": expected a barrier after mbarrier_init, got another address,");
    });
  if (checker_) checker_->access(barrier, 8, Access::atomic, site_of(where));
  return found->second;
}

void Scheduler::mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Location where) {
  start_sync();
  if (!arena_.holds(barrier))
    fail(Finding::invalid_address, where,
         "mbarrier_init: expected a barrier in shared memory, got another address,");
  if (arrivals < 1 || arrivals > (1u << 20) - 1)
    fail(Finding::divergent_barrier, where,
         [&] { return str("mbarrier_init: expected 1 to 1048575 arrivals, got ", arrivals, ","); });
  if (checker_) checker_->access(barrier, 8, Access::write, site_of(where));
  if (const auto found = sync_.mbarriers.find(barrier);
      found != sync_.mbarriers.end() && !found->second.waiting.empty())
    fail(Finding::divergent_barrier, where, "mbarrier_init, while threads wait at it,");
  *barrier = arrivals;
  BlockSync::Mbarrier made;
  made.arrivals = made.pending = arrivals;
  sync_.mbarriers[barrier] = std::move(made);
}

void Scheduler::mbarrier_arrive(std::uint64_t* address, bool copies, Location where) {
  BlockSync::Mbarrier& barrier = mbarrier_at(address, "mbarrier_arrive", where);
  const unsigned me = current_->index;
  if (copies && !current_->copies.empty()) {
    for (const AsyncCopy& copy : current_->copies) barrier.copies.emplace_back(me, copy);
    current_->copies.clear();
  } else if (checker_) {
    checker_->release(me, barrier.arriving);
  }
  if (--barrier.pending != 0) return;
  // a copy is an access of the thread that issued it
  for (const auto& [thread, copy] : std::exchange(barrier.copies, {})) {
    if (checker_) checker_->set_thread(thread);
    land(copy);
    if (checker_) checker_->release(thread, barrier.arriving);
  }
  if (checker_) checker_->set_thread(me);
  barrier.pending = barrier.arrivals;
  ++barrier.phase;
  barrier.completed = std::exchange(barrier.arriving, {});
  release_waiting(barrier.waiting, barrier.completed);
}

void Scheduler::mbarrier_wait(std::uint64_t* address, unsigned parity, Location where) {
  BlockSync::Mbarrier& barrier = mbarrier_at(address, "mbarrier_wait", where);
  if (parity > 1)
    fail(Finding::divergent_barrier, where,
         [&] { return str("mbarrier_wait: expected a parity of 0 or 1, got ", parity, ","); });
  // the parity of the phase under way is that of its number
  if (barrier.phase % 2 == parity) {
    barrier.waiting.push_back(current_);
    wait_at_some_barrier(0, where);
  } else if (checker_) {
    checker_->acquire(current_->index, barrier.completed);
  }
}

}  // namespace braid::simt
