#include "simt/scheduler.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "simt/checker.hpp"
#include "simt/signals.hpp"

#define SIMT_DEFINE_VARIABLE constinit thread_local __attribute__((tls_model("initial-exec")))
SIMT_DEFINE_VARIABLE uint3 threadIdx{};
SIMT_DEFINE_VARIABLE uint3 blockIdx{};
SIMT_DEFINE_VARIABLE dim3 blockDim{};
SIMT_DEFINE_VARIABLE dim3 gridDim{};

namespace braid::simt {

namespace {
// a plain pointer, so that the hot path needs no initialization guard
SIMT_DEFINE_VARIABLE Scheduler* running_scheduler = nullptr;
bool same_place(const Location& a, const Location& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}
}  // namespace

Scheduler* Scheduler::running() noexcept { return running_scheduler; }

Scheduler& Scheduler::of_this_thread() {
  static thread_local Scheduler scheduler;
  return scheduler;
}

Scheduler::Scheduler() = default;
Scheduler::~Scheduler() = default;

Fiber* Scheduler::new_fiber() {
  if (free_fibers_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(&Scheduler::fiber_main, fibers_.size()));
    free_fibers_.reserve(fibers_.size());
    return fibers_.back().get();
  }
  Fiber* fiber = free_fibers_.back();
  free_fibers_.pop_back();
  return fiber;
}

inline void Scheduler::switch_now(Fiber& to) {
  Fiber* from = fiber_;
  fiber_ = &to;
  ++stats_.switches;
  if (checker_) checker_->set_stack(to.stack(), to.bytes());
  from->switch_to(to);
}

inline void Scheduler::enter(Thread* thread) {
  current_ = thread;
  threadIdx = thread->id;
  if (checker_) checker_->set_thread(thread->index);
}

// Returns the thread of this block that runs next. Returns nullptr if all threads are done or all
// remaining threads wait.
inline Thread* Scheduler::next_thread() {
  if (ready_begin_ != ready_end_) {
    // First in, first out. So forward and reverse differ in every phase of a block, not only in the
    // first.
    if (config_.order != Order::random) return ready_[ready_begin_++ & kRingMask];
    const unsigned pick =
        ready_begin_ + static_cast<unsigned>(random() % (ready_end_ - ready_begin_));
    std::swap(ready_[pick & kRingMask], ready_[ready_begin_ & kRingMask]);
    return ready_[ready_begin_++ & kRingMask];
  }
  if (started_ < count_) return &threads_[start_order_[started_++]];
  return nullptr;
}

// Leaves the running fiber for that of `thread`, or for the host's if `thread` is null.
inline void Scheduler::go(Thread* thread) {
  if (!thread) {
    switch_now(main_);
    return;
  }
  if (thread->state == State::fresh) thread->fiber = new_fiber();
  Fiber* fiber = thread->fiber;
  enter(thread);
  if (fiber != fiber_) switch_now(*fiber);
}

// The running thread waits. Returns when it runs again; the code that switches to it has called
// enter().
inline void Scheduler::wait_now() {
  current_->in_vain = 0;
  go(next_thread());
}

// For the other files: in position-independent code the compiler inlines only functions that are
// declared inline.
void Scheduler::switch_to(Fiber& to) { switch_now(to); }
void Scheduler::wait() { wait_now(); }

void Scheduler::fiber_main() {
  Fiber::entered();
  running_scheduler->thread_loop();
}

void Scheduler::thread_loop() {
  for (;;) {
    Fiber* mine = fiber_;
    for (;;) {  // threads that never wait share this fiber
      bool thrown = false;
      try {
        closure_->thread();
      } catch (const std::exception& e) {
        pause_checker();
        note(details_at(Finding::exception, {}), std::string("left the kernel: ") + e.what());
        thrown = true;
      } catch (...) {
        pause_checker();
        note(details_at(Finding::exception, {}), "left the kernel");
        thrown = true;
      }
      if (thrown) leave_kernel();
      thread_done();
      Thread* next = next_thread();
      if (!next || next->state != State::fresh) {
        free_fibers_.push_back(mine);
        go(next);
        break;  // reached when a new thread reuses this fiber
      }
      next->fiber = mine;
      next->state = State::ready;
      enter(next);
    }
  }
}

void Scheduler::thread_done() {
  Thread& me = *current_;
  me.state = State::done;
  --live_;
  ++stats_.threads;
  effort_ = 0;
  if (checker_) checker_->progress();
  if (!me.copies.empty())
    fail(Finding::async_copy, me.copies.front().where,
         "returned with a cp.async that nobody waited for, issued");
  if (arrived_ != 0)
    fail(Finding::divergent_barrier, barrier_,
         "returned, while other threads of the block wait at the __syncthreads");
  if (sync_.used) check_sync_at_end();
  leave_warp(me.index / 32, me.index % 32u);
}

inline void Scheduler::release_barrier() {
  ++stats_.barriers;
  const unsigned waiting = arrived_ - 1;
  arrived_ = 0;
  vote_result_ = vote_sum_;
  vote_kind_ = -1;
  if (checker_) checker_->block_barrier();
  current_->in_vain = 0;
  ready_.swap(at_barrier_);  // all other threads wait here, so no thread was ready
  ready_begin_ = 0;
  ready_end_ = waiting;
}

inline void Scheduler::barrier_now(Location where) {
  Thread* me = current_;
  if (live_ < count_)
    fail(Finding::divergent_barrier, where, [&] {
      return str("__syncthreads, but ", count_ - live_,
                 " threads of the block have already returned,");
    });
  if (arrived_ != 0 && !same_place(barrier_, where))
    fail(Finding::divergent_barrier, where,
         "__syncthreads, while other threads of the block wait at another one,", barrier_);
  if (arrived_ == 0) barrier_ = where;
  if (++arrived_ == live_) {
    release_barrier();
    if ((effort_ += count_) > config_.progress_limit) fail_without_progress(where);
  } else {
    me->state = State::at_barrier;
    at_barrier_[arrived_ - 1] = me;
    wait_now();
  }
}

void Scheduler::barrier(Location where) { barrier_now(where); }

void detail::block_barrier(Location where) {
  if (!running_scheduler)
    throw braid::Error("__syncthreads: expected a call from a kernel, got one from the host");
  running_scheduler->barrier_now(where);
}

int Scheduler::vote(int predicate, detail::Vote kind, Location where) {
  const int value = predicate != 0 ? 1 : 0;
  if (vote_kind_ < 0) {
    vote_kind_ = static_cast<int>(kind);
    vote_sum_ = value;
  } else if (kind == detail::Vote::count) {
    vote_sum_ += value;
  } else if (kind == detail::Vote::all) {
    vote_sum_ &= value;
  } else {
    vote_sum_ |= value;
  }
  barrier(where);
  return vote_result_;
}

void Scheduler::fail_without_progress(Location where) {
  // the threads have passed two rounds at most since one of them waited for a flag
  if (polls_.line != 0 && effort_ - polls_effort_ <= std::uint64_t{4} * count_)
    fail(Finding::spin_wait, polls_,
         [&] { return str(waits_for_a_flag(config_.progress_limit), ","); });
  fail(Finding::spin_wait, where, [&] {
    return str(
        "barriers and warp operations that ", config_.progress_limit,
        " threads have passed (BRAID_SIMT_PROGRESS_LIMIT) without one that returned, the last");
  });
}

// A thread that has not begun goes first: otherwise those that have would run alone.
void Scheduler::let_others_run() {
  if (ready_begin_ == ready_end_ && started_ == count_) return;
  make_ready(*current_);
  go(started_ < count_ ? &threads_[start_order_[started_++]] : next_thread());
}

void Scheduler::in_vain(const void*, Location where) {
  if (++current_->in_vain < config_.spin_limit) return;
  fail(Finding::spin_wait, where, [&] {
    return str(config_.spin_limit,
               " atomics that changed nothing, without a barrier in between: fibers are not "
               "preempted, nobody else runs meanwhile,");
  });
}

void Scheduler::polled(const void* p, std::uint64_t value, Location where) {
  Thread& me = *current_;
  const bool again = me.polled == p && me.polled_value == value;
  me.polled = p;
  me.polled_value = value;
  if (++me.in_vain >= config_.spin_limit)
    fail(Finding::spin_wait, where, [&] { return str(waits_for_a_flag(config_.spin_limit), ","); });
  if (again) {
    polls_ = where;
    polls_effort_ = effort_;
  } else if (me.in_vain % 16 != 0) {  // a thread may poll several words in turn
    return;
  }
  if (!checker_ && config_.workers > 1) std::this_thread::yield();  // to blocks of other workers
  let_others_run();
}

void* Scheduler::shared_array(const detail::SharedArray* array) {
  const SharedSlot* slot = arena_.find(array);
  if (!slot) {
    slot = arena_.add(array, array->bytes, array->align, array->name, array->element);
    // dynamic <= config_.shared_limit: valid_launch
    const std::size_t dynamic = launch_->shared_bytes,
                      few = std::min(config_.shared_limit, kSharedWithoutAttribute),
                      most = dynamic > kDynamicWithAttribute ? config_.shared_limit : few,
                      limit = std::min(most - dynamic, few),
                      used = arena_.used() - (arena_.find(nullptr) ? dynamic : 0);
    if (!slot || used > limit)
      fail(Finding::shared_memory, {array->file, array->line}, [&] {
        return str("shared memory: expected at most ", limit, " bytes of arrays beside ", dynamic,
                   " of dynamic memory, got more with ", array->name, ", declared");
      });
    if (checker_) checker_->add_shared(*slot);
  }
  return slot->begin;
}

void* Scheduler::dynamic_shared() {
  const SharedSlot* slot = arena_.find(nullptr);
  if (!slot) {
    slot = arena_.add(nullptr, launch_->shared_bytes, 16, "dynamic shared memory", 4);
    if (!slot)
      fail(Finding::shared_memory, launch_->where, [&] {
        return str("shared memory: expected room for ", launch_->shared_bytes,
                   " bytes of dynamic memory, got none left; launched");
      });
    if (checker_) checker_->add_shared(*slot);
  }
  return slot->begin;
}

void Scheduler::abandon() {
  free_fibers_.clear();
  for (auto& fiber : fibers_) {
    fiber->reset();
    free_fibers_.push_back(fiber.get());
  }
  free_groups_.clear();
  for (auto& group : groups_) free_groups_.push_back(group.get());
  for (Warp& warp : warps_) warp.entering.clear();
}

void Scheduler::run_block() {
  for (Thread& thread : threads_) {
    thread.state = State::fresh;
    thread.groups = 0;
    thread.in_vain = 0;
    thread.polled = nullptr;
    if (!thread.copies.empty()) thread.copies.clear();
  }
  for (Warp& warp : warps_) warp.done = 0;
  live_ = count_;
  arrived_ = started_ = ready_begin_ = ready_end_ = 0;
  vote_kind_ = -1;
  effort_ = 0;
  polls_ = {};
  if (sync_.used) sync_.clear();
  arena_.reset();
  if (checker_) checker_->block_begin();
  ++stats_.blocks;
  go(next_thread());
  if (error_) {
    abandon();
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
  if (live_ != 0) report_deadlock();
  if (checker_) checker_->block_end();
}

void Scheduler::prepare(const Launch& launch) {
  const unsigned x = launch.block.x, y = launch.block.y, n = x * y * launch.block.z;
  if (threads_.size() != n) {
    threads_.resize(n);
    start_order_.resize(n);
  }
  count_ = n;
  for (unsigned i = 0; i < n; ++i) {
    threads_[i].index = static_cast<std::uint16_t>(i);
    threads_[i].id = {i % x, i / x % y, i / (x * y)};
    start_order_[i] = static_cast<std::uint16_t>(config_.order == Order::reverse ? n - 1 - i : i);
  }
  warps_.resize((n + 31) / 32);
  for (unsigned w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = std::min(32u, n - 32 * w);
    warps_[w].lanes = lanes == 32 ? ~0u : (1u << lanes) - 1;
  }
  blockDim = launch.block;
  gridDim = launch.grid;
}

void Scheduler::run(const Launch& launch, const Closure& closure, const Config& config,
                    Checker* checker, std::atomic<std::uint64_t>& next,
                    const std::atomic<bool>& failed) {
  if (running_scheduler)
    throw Error("launch: expected a call from the host, got one from a kernel",
                details_at(Finding::bad_launch, launch.where));
  config_ = config;
  launch_ = &launch;
  closure_ = &closure;
  checker_ = checker;
  prepare(launch);
  main_.adopt_thread_stack();
  fiber_ = &main_;
  const std::uint64_t gx = launch.grid.x, gy = launch.grid.y, blocks = gx * gy * launch.grid.z;
  // A random order of the blocks: steps by a number that is coprime to their count.
  std::uint64_t step = 1, start = 0;
  if (config.order == Order::random) {
    random_ = config.seed * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 8; ++i) random();
    start = random() % blocks;
    step = random() % blocks | 1;
    while (std::gcd(step, blocks) != 1) ++step;
    step %= blocks;
  }
  struct Restore {
    Scheduler& s;
    ~Restore() {
      running_scheduler = nullptr;
      s.fiber_ = nullptr;
      add_stats(std::exchange(s.stats_, {}));
    }
  } restore{*this};
  const SignalGuard guard(signal_stack_);
  running_scheduler = this;
  for (std::uint64_t i; !failed && (i = next++) < blocks;) {
    std::uint64_t k = i;
    if (config.order == Order::reverse) k = blocks - 1 - i;
    if (config.order == Order::random) {
      k = (start + i % blocks * step) % blocks;
      // depends on the block only, not on the host thread that runs it
      random_ = (config.seed + 1) * 0x9e3779b97f4a7c15u ^ (k + 1) * 0xbf58476d1ce4e5b9u;
      if (random_ == 0) random_ = 1;
      for (std::size_t j = count_ - 1; j > 0; --j)
        std::swap(start_order_[j], start_order_[random() % (j + 1)]);
    }
    blockIdx = {static_cast<unsigned>(k % gx), static_cast<unsigned>(k / gx % gy),
                static_cast<unsigned>(k / (gx * gy))};
    run_block();
  }
}

}  // namespace braid::simt
