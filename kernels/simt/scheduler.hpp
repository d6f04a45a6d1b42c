#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "simt/arena.hpp"
#include "simt/block_sync.hpp"
#include "simt/config.hpp"
#include "simt/device.hpp"
#include "simt/error.hpp"
#include "simt/fiber.hpp"
#include "simt/launch.hpp"
#include "simt/ptx.hpp"
#include "simt/stats.hpp"

namespace braid::simt {

class Checker;

enum class State : std::uint8_t { fresh, ready, at_barrier, in_warp_op, at_some_barrier, done };

/// One CUDA thread of the running block.
struct alignas(64) Thread {  // members that every switch touches are in the first cache line
  Fiber* fiber = nullptr;
  State state = State::fresh;
  std::uint16_t index = 0;    // within the block
  std::uint32_t in_vain = 0;  // atomics that changed nothing since it last waited
  uint3 id{};
  Location where;     // the warp operation where it waits
  unsigned mask = 0;  // of that warp operation
  int barrier = 0;    // a named barrier where it waits; 0: an mbarrier
  int groups = 0;     // cp.async groups it has committed
  std::vector<AsyncCopy> copies;
  const void* polled = nullptr;  // the word of its last load_acquire
  std::uint64_t polled_value = 0;
};

/// The lanes that synchronize in one warp operation.
struct WarpGroup {
  unsigned named = 0;  // the mask that the kernel passed, limited to lanes that exist
  unsigned mask = 0;   // the lanes of `named` that have not returned
  unsigned arrived = 0;
  int leaving = 0;  // lanes that have not read their result yet
  detail::WarpOp op{};
  int kind = 0;  // an Mma, or the number of matrices
  Location where;
  alignas(16) std::uint32_t in[32][12];
  alignas(16) std::uint32_t out[32][4];
};

struct Warp {
  unsigned lanes = 0;  // that exist
  unsigned done = 0;   // that have returned
  std::vector<WarpGroup*> entering;
};

/// Runs the threads of a block, one block at a time, on the calling host thread. A CUDA thread that
/// waits has its own fiber. Threads that never wait share a fiber and run as a plain loop. A
/// waiting thread switches directly to the next thread that can run.
class Scheduler {
 public:
  /// Returns the scheduler of the calling host thread.
  static Scheduler& of_this_thread();
  /// Returns the scheduler that runs a kernel on this host thread, or nullptr.
  static Scheduler* running() noexcept;
  Scheduler();
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Runs blocks taken from `next` until there are none left or `failed` is set. Reports every
  /// event to the checker, if there is one.
  void run(const Launch& launch, const Closure& closure, const Config& config, Checker* checker,
           std::atomic<std::uint64_t>& next, const std::atomic<bool>& failed);

  /// Sets the launch, the closure and the configuration before run(), because the checker reads
  /// them earlier.
  void expose(const Launch& launch, const Closure& closure, const Config& config) {
    launch_ = &launch;
    closure_ = &closure;
    config_ = config;
  }

  // Called by the running CUDA thread. Each may switch to another thread, or leave the kernel with
  // an Error.
  void barrier(Location where);
  int vote(int predicate, detail::Vote vote, Location where);
  WarpGroup& meet(unsigned mask, detail::WarpOp op, int kind, const void* in, std::size_t bytes,
                  Location where);
  void leave(WarpGroup& group) {
    if (--group.leaving == 0) free_groups_.push_back(&group);
  }
  void* shared_array(const detail::SharedArray* array);
  void* dynamic_shared();
  void async_copy(const AsyncCopy& copy);
  void async_wait(int newest);
  void async_wait_all();
  void in_vain(const void* p, Location where);
  /// Called after a load_acquire. Lets other threads run if this one waits for a flag.
  void polled(const void* p, std::uint64_t value, Location where);
  /// Returns true if a load should overlook one more store: half the time in the random order.
  bool overlooks_a_store() noexcept {
    return config_.order == Order::random && random() >> 63 != 0;
  }
  void named_barrier(int id, int threads, bool waits, Location where);
  void mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Location where);
  void mbarrier_arrive(std::uint64_t* barrier, bool copies, Location where);
  void mbarrier_wait(std::uint64_t* barrier, unsigned parity, Location where);
  /// Lets another thread of the block run.
  void let_others_run();
  /// Returns a random number of accesses after which a thread lets others run, or 0.
  std::uint64_t delay() noexcept {
    if (config_.delay == 0 || config_.order != Order::random) return 0;
    return 1 + random() % (2 * std::uint64_t{config_.delay});
  }
  /// Records the error that run() will throw. `what` follows the kernel's name and the coordinates.
  /// Call leave_kernel() next.
  void note(Error::Details details, const std::string& what);
  /// Leaves the kernel and never returns. Nothing that owns memory may be alive on this fiber's
  /// stack, because its destructor does not run.
  [[noreturn]] void leave_kernel();
  /// note and leave_kernel. `what` is a text or a function that returns one; it is freed before
  /// leaving.
  template <class Text>
  [[noreturn]] void fail(Finding finding, Location where, const Text& what, Location other = {}) {
    pause_checker();
    if constexpr (std::is_invocable_v<const Text&>) note_at(finding, where, what(), other);
    else note_at(finding, where, what, other);
    leave_kernel();
  }

  /// As fail, for an address in the program's code.
  [[noreturn]] void fail_at(Finding finding, std::uint64_t site, const char* what);
  [[nodiscard]] unsigned lanes_of_warp() const noexcept {
    return warps_[current_->index / 32].lanes;
  }
  [[nodiscard]] unsigned threads_of_block() const noexcept { return count_; }
  [[nodiscard]] Thread& current() noexcept { return *current_; }
  [[nodiscard]] const Fiber& fiber() const noexcept { return *fiber_; }
  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  [[nodiscard]] Checker* checker() const noexcept { return checker_; }
  [[nodiscard]] const Launch& launch() const noexcept { return *launch_; }
  [[nodiscard]] const Closure& closure() const noexcept { return *closure_; }
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] std::string kernel() const;

 private:
  friend void detail::block_barrier(Location where);
  void barrier_now(Location where);
  static void fiber_main();
  void prepare(const Launch& launch);
  void run_block();
  void thread_loop();
  void thread_done();
  Thread* next_thread();
  void go(Thread* thread);
  void wait();
  void wait_now();
  void enter(Thread* thread);
  void make_ready(Thread& thread) {
    thread.state = State::ready;
    ready_[ready_end_++ & kRingMask] = &thread;
  }
  void release_barrier();
  void leave_warp(unsigned warp_index, unsigned lane);
  void complete(WarpGroup& group, Warp& warp, unsigned warp_index);
  void land(const AsyncCopy& copy);
  void start_sync();
  void check_sync_at_end();
  void wait_at_some_barrier(int barrier, Location where);
  void release_waiting(std::vector<Thread*>& waiting, const ThreadOrder::Clock& clock);
  BlockSync::Mbarrier& mbarrier_at(std::uint64_t* barrier, const char* call, Location where);
  void land_group(WarpGroup& group);
  Fiber* new_fiber();
  void switch_to(Fiber& to);
  void switch_now(Fiber& to);
  void abandon();
  static void pause_checker() noexcept;
  [[noreturn]] void fail_without_progress(Location where);
  [[noreturn]] void report_deadlock();
  void note_at(Finding finding, Location where, const std::string& what, Location other);
  std::uint64_t random() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
  }

  static constexpr unsigned kRingMask = 2047;
  Fiber main_;
  Fiber* fiber_ = nullptr;
  Thread* current_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::uint16_t> start_order_;
  // the first arrived_ entries are valid
  std::vector<Thread*> at_barrier_ = std::vector<Thread*>(kRingMask + 1);
  std::vector<Thread*> ready_ = std::vector<Thread*>(kRingMask + 1);
  unsigned ready_begin_ = 0, ready_end_ = 0;
  unsigned count_ = 0, live_ = 0, arrived_ = 0, started_ = 0;
  Location barrier_;  // where the threads wait
  // threads that have passed barriers and warp operations since a thread last returned
  std::uint64_t effort_ = 0;
  Location polls_;                  // the last load_acquire that returned what it had before
  std::uint64_t polls_effort_ = 0;  // and the effort at that time
  BlockSync sync_;
  int vote_kind_ = -1, vote_sum_ = 0, vote_result_ = 0;
  Config config_;
  Checker* checker_ = nullptr;
  const Launch* launch_ = nullptr;
  const Closure* closure_ = nullptr;
  Arena arena_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_fibers_;
  std::vector<std::unique_ptr<WarpGroup>> groups_;
  std::vector<WarpGroup*> free_groups_;
  std::exception_ptr error_;
  std::uint64_t random_ = 1;
  Stats stats_;
  std::unique_ptr<char[]> signal_stack_;
};

[[nodiscard]] std::string hex(unsigned mask);
[[nodiscard]] const char* name_of(detail::WarpOp op);
/// The text of a load_acquire that waits in vain.
[[nodiscard]] std::string waits_for_a_flag(std::uint64_t times);
void add_stats(const Stats& more);
/// Returns `file.cu:12`, with the file's base name.
[[nodiscard]] std::string to_string(const Location& where);
/// Fills the file and the line of a finding.
[[nodiscard]] Error::Details details_at(Finding finding, Location where, Location other = {});

}  // namespace braid::simt
