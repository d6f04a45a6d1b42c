#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/arena.hpp"
#include "simt/block_order.hpp"
#include "simt/error.hpp"
#include "simt/memory_map.hpp"
#include "simt/op_sets.hpp"
#include "simt/symbols.hpp"
#include "simt/thread_order.hpp"

namespace braid::simt {

class Profiler;
class Scheduler;

/// Returns true if the program has kernels that report their loads and stores to the checker.
/// Without such kernels nothing is checked: vector accesses and atomics, which report themselves,
/// would look wrong without the other accesses.
[[nodiscard]] bool kernels_are_instrumented() noexcept;

/// Why accesses of two blocks are a race.
inline constexpr const char* kNoBlockOrder =
    "with no order between the blocks: a __threadfence before the atomic that announces it makes "
    "one, or a store_release that is read with load_acquire";

/// Held while an operation is checked: the checker handles one at a time.
[[nodiscard]] std::mutex& grid_mutex();

/// Checks every load and store of instrumented kernels, and every atomic, fence and barrier.
/// Handles one grid, copy or memset at a time.
///
/// Orderings that it knows: program order of a thread; __syncthreads; __syncwarp (exact, by vector
/// clocks, also for partial masks); named barriers and mbarriers (ThreadOrder); fences and atomics
/// between blocks (BlockOrder); between operations, what the runtime reports (happens_before). Two
/// unordered accesses to the same byte are a race if at least one is a write and not both are
/// atomic. There are no false positives. Some races are missed, because a cell cannot record
/// everything: for example unordered accesses of dozens of operations (OpSets), or accesses to
/// parts of a word in different intervals.
class Checker {
 public:
  /// Returns the only checker of the process. Hold grid_mutex() while using it.
  static Checker& instance();
  /// Returns the checker that watches the kernel running on this host thread, or nullptr.
  static Checker* active() noexcept;
  /// Stops checking until the next grid begins. Code that builds a report must not be checked, but
  /// a kernel's file may contain instrumented copies of functions that it uses.
  static void pause() noexcept;

  void grid_begin(Scheduler& scheduler, Profiler* profiler);
  void grid_end() noexcept;
  /// Called when a thread returns or a block starts.
  void progress() noexcept { deadline_ = accesses_ + progress_limit_; }
  void block_begin();
  void block_end();
  void block_barrier() noexcept;
  void warp_barrier(unsigned warp, unsigned mask) noexcept;
  void fence();
  /// Orderings by barriers of some threads of the block: see ThreadOrder.
  void start_thread_order(unsigned threads);
  void release(unsigned t, ThreadOrder::Clock& clock);
  void acquire(unsigned t, const ThreadOrder::Clock& clock) { threads_.acquire(t, clock); }
  void set_thread(unsigned index) noexcept {
    thread_ = index;
    idle_ = 0;
    last_atomic_ = nullptr;
  }
  void set_stack(const char* begin, std::size_t bytes) noexcept {
    stack_ = begin;
    stack_bytes_ = bytes;
  }
  void add_shared(const SharedSlot& slot);
  void async_issue(void* shared, std::size_t size, const void* global, std::size_t bytes,
                   Location where);
  void async_land(void* shared, std::size_t size, const void* global, std::size_t bytes,
                  Location where);
  /// `aligned`: the access must be aligned to its size.
  void access(const void* p, std::size_t bytes, Access mode, Site site, bool aligned = true);

  /// Checks and records a load_acquire. Returns the value that it observes.
  [[nodiscard]] std::uint64_t load_acquire(const void* p, std::size_t bytes, Site site);
  /// Checks and records a store_release, before memory changes.
  void store_release(const void* p, std::size_t bytes, Site site);

  /// An access by __ldg, whose memory no thread of the grid may write.
  void constant(const void* p, std::size_t bytes, Site site);

  // For operations other than kernels.
  void set_op(std::uint32_t op, int device) noexcept {
    op_ = op;
    device_ = device;
  }
  void operation_begin();
  void range(Region& region, const char* p, std::size_t bytes, bool write);

 private:
  void check_global(Region& r, const char* a, std::size_t offset, std::size_t bytes, Access mode,
                    Site site);
  void read_cell(Region& r, Cell& c, unsigned mask, const char* a, Site site);
  void write_cell(Region& r, Cell& c, unsigned mask, const char* a, Access mode, Site site);
  void check_writers(Region& r, Cell& c, unsigned mask, const char* a, Access mode, Site site);
  void check_readers(Region& r, Cell& c, unsigned mask, const char* a, Access mode, Site site);
  void check_others(Region& r, const Cell& c, unsigned mask, const char* a, Access mode, Site site);
  void check_atomics(Region& r, Cell& c, const char* a, Site site);
  void acquire_cell(Region& r, Cell& c, unsigned mask, const char* a, Site site);
  void note_acquire(Cell& c, unsigned mask, Site site);
  void check_acquires(Region& r, Cell& c, unsigned mask, const char* a, Site site);
  void require_global(const char* call, const char* a, Site site);
  void check_threads(Region& r, Cell& c, unsigned mask, const char* a, Access mode, Site site);
  void note_atomic(Cell& c, unsigned mask);
  void set_writer_op(Cell& c, unsigned mask, Access mode);
  void set_reader_op(Cell& c, unsigned mask);
  Region* find(const char* a, std::size_t bytes, Access mode, Site site);
  Region* find_shared(const char* a) noexcept;
  bool harmless(const char* a, Access mode);
  [[nodiscard]] bool ordered(std::uint16_t who, std::uint16_t clock, std::uint32_t lanes,
                             std::uint32_t tick) const noexcept;
  bool op_ordered(std::uint32_t op) {
    return op == 0 || op == op_ || op_ == 0 || known_[op % kKnown] == op || ask_order(op);
  }
  bool ask_order(std::uint32_t op);
  [[nodiscard]] std::uint16_t now() const noexcept {
    return clock_[thread_ / 32][thread_ % 32][thread_ % 32];
  }
  [[nodiscard]] std::uint16_t me() const noexcept {
    return static_cast<std::uint16_t>(thread_ + 1);
  }
  static unsigned first_writer(const Cell& c, unsigned mask);

  // Findings. Each is recorded by a function that returns, so that its strings are freed. Only then
  // is the kernel left.
  void note(Finding finding, const Region* r, Site site, const std::string& text, Site other = 0);
  void note_race(Region& r, const char* a, Access mode, Site site, std::uint16_t who,
                 const char* did, Site other, const char* why);
  void note_stream_race(Region& r, const char* a, Access mode, Site site, std::uint32_t op,
                        const char* did, Site other);
  void note_nowhere(const char* a, std::size_t bytes, Access mode, Site site);
  void note_state(Region& r, const char* a, std::size_t bytes, Access mode, Site site);
  void note_uninitialised(Region& r, const char* a, Site site, bool in_flight);
  [[noreturn]] void leave();
  template <class Note> [[noreturn]] void leave_after(const Note& note_it) {
    pause();
    note_it();
    leave();
  }
  template <class Text>
  [[noreturn]] void report(Finding finding, const Region* r, Site site, const Text& text) {
    pause();
    note(finding, r, site, text());
    leave();
  }
  [[nodiscard]] std::string describe(const Region& r, const char* a) const;
  [[nodiscard]] static std::string variable(const Region& r);

  static constexpr unsigned kKnown = 256;
  Scheduler* scheduler_ = nullptr;
  Profiler* profiler_ = nullptr;
  unsigned thread_ = 0;
  const char* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
  const char* variables_ = nullptr;  // threadIdx and the other built-in variables
  std::size_t variables_bytes_ = 0;
  Region none_;
  Region* last_ = &none_;
  Region* recent_[8] = {};
  unsigned next_recent_ = 0;
  std::uint64_t generation_ = 0;
  const char* arena_ = nullptr;
  std::size_t arena_bytes_ = 0;
  std::vector<Region> shared_;
  ShadowMemory shared_cells_;
  std::uint32_t tick_ = 0, barrier_tick_ = 0, block_tick_ = 0, launch_tick_ = 0;
  std::uint32_t op_ = 0;
  int device_ = -1;                   // -1: any
  std::uint32_t known_[kKnown] = {};  // operations that are ordered before this one
  std::uint64_t accesses_ = 0, deadline_ = 0, progress_limit_ = 0;
  std::uint64_t until_delay_ = 0;  // accesses until the thread lets others run; 0: it never does
  const char* spin_[2] = {};
  std::uint32_t idle_ = 0, spin_limit_ = 0;
  std::uint32_t moved_warps_ = 0;  // warps whose clocks are not zero
  BlockOrder blocks_;
  ThreadOrder threads_;
  OpSets sets_;
  struct EarlierAtomic {
    std::uint32_t tick;
    unsigned thread;
    Site site;
  };
  // an earlier atomic of another block, for words that several blocks have updated
  std::unordered_map<const Cell*, EarlierAtomic> earlier_atomics_;
  struct Acquire {
    std::uint32_t tick;
    std::uint16_t who, clock;
    std::uint8_t bytes;  // a mask
    Site site;
  };
  // the last load_acquire of each word by some threads of the grid
  std::unordered_map<const Cell*, std::vector<Acquire>> acquires_;
  // of each word that the running block has stored with store_release: what its load orders
  std::unordered_map<const void*, ThreadOrder::Clock> flags_;
  const void* last_atomic_ = nullptr;  // of the running thread
  std::pair<const char*, const char*> constants_{};
  std::exception_ptr error_;  // of an operation that is not a kernel
  // [warp][lane][other lane]: the latest warp barrier of the other lane that this lane knows of
  std::uint16_t clock_[32][32][32] = {};

  Checker();
};

}  // namespace braid::simt
