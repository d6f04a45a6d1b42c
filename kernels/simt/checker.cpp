#include "simt/checker.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "simt/profiler.hpp"
#include "simt/scheduler.hpp"

namespace braid::simt {

namespace {

constinit thread_local __attribute__((tls_model("initial-exec"))) Checker* active_checker = nullptr;
constexpr std::uint32_t kLastTick = 0xf0000000u;
constexpr std::size_t kMostSets = 1 << 20;
constexpr std::uint16_t kLastClock = 0xfff0;

std::uint64_t all_bytes(std::uint16_t who) { return who * std::uint64_t{0x0001000100010001}; }
std::uint64_t load(const std::uint16_t (&who)[4]) {
  std::uint64_t x;
  std::memcpy(&x, who, 8);
  return x;
}
void store(std::uint16_t (&who)[4], std::uint64_t x) { std::memcpy(who, &x, 8); }

}  // namespace

Checker& Checker::instance() {
  static Checker* checker = new Checker;  // outlives the last kernel of the process
  return *checker;
}

Checker* Checker::active() noexcept { return active_checker; }
void Checker::pause() noexcept { active_checker = nullptr; }

Checker::Checker() : shared_cells_((std::size_t{1} << 20) / 4 * sizeof(Cell)) {
  shared_.reserve(64);
}

void Checker::operation_begin() {
  auto& map = MemoryMap::instance();
  map.collect();
  // the counters are nearly full (after days of work): forget everything, so as not to report
  // falsely
  if (tick_ > kLastTick || sets_.count() > kMostSets) {
    map.clear_cells();
    shared_cells_.clear();
    sets_.clear();
    tick_ = 0;
  }
  sets_.new_operation();
  launch_tick_ = block_tick_ = barrier_tick_ = ++tick_;
  std::fill(std::begin(known_), std::end(known_), 0u);
  std::fill(std::begin(recent_), std::end(recent_), nullptr);
  last_ = &none_;
  generation_ = map.generation();
}

void Checker::grid_begin(Scheduler& scheduler, Profiler* profiler) {
  operation_begin();
  scheduler_ = &scheduler;
  profiler_ = profiler;
  arena_ = scheduler.arena().begin();
  arena_bytes_ = scheduler.arena().bytes();
  spin_limit_ = scheduler.config().spin_limit;
  progress_limit_ = scheduler.config().progress_limit;
  until_delay_ = scheduler.delay();
  constants_ = {};
  const auto ends = std::minmax(
      {reinterpret_cast<const char*>(&threadIdx), reinterpret_cast<const char*>(&blockIdx),
       reinterpret_cast<const char*>(&blockDim), reinterpret_cast<const char*>(&gridDim)});
  variables_ = ends.first;
  variables_bytes_ = static_cast<std::size_t>(ends.second - ends.first) + sizeof(dim3);
  blocks_.grid_begin();
  earlier_atomics_.clear();
  acquires_.clear();
  active_checker = this;
}

void Checker::grid_end() noexcept {
  active_checker = nullptr;
  scheduler_ = nullptr;
  profiler_ = nullptr;
  shared_.clear();
  last_ = &none_;
  add_stats({.accesses = std::exchange(accesses_, 0)});
}

void Checker::block_begin() {
  progress();
  block_tick_ = barrier_tick_ = ++tick_;
  shared_.clear();
  last_ = &none_;
  for (; moved_warps_ != 0; moved_warps_ &= moved_warps_ - 1)
    std::memset(clock_[std::countr_zero(moved_warps_)], 0, sizeof clock_[0]);
  blocks_.block_begin(tick_);
  threads_.block_begin();
  if (!flags_.empty()) flags_.clear();
}

void Checker::block_end() {
  if (profiler_) profiler_->flush();
}

void Checker::block_barrier() noexcept {
  barrier_tick_ = ++tick_;
  idle_ = 0;
}

void Checker::warp_barrier(unsigned w, unsigned mask) noexcept {
  std::uint16_t joined[32] = {};
  bool full = false;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1)) continue;
    full |= ++clock_[w][i][i] >= kLastClock;
    for (int j = 0; j < 32; ++j) joined[j] = std::max(joined[j], clock_[w][i][j]);
  }
  for (unsigned i = 0; i < 32; ++i)
    if (mask >> i & 1) std::memcpy(clock_[w][i], joined, sizeof joined);
  moved_warps_ |= 1u << w;
  if (full) {  // the clocks restart; everything before counts as ordered
    for (; moved_warps_ != 0; moved_warps_ &= moved_warps_ - 1)
      std::memset(clock_[std::countr_zero(moved_warps_)], 0, sizeof clock_[0]);
    barrier_tick_ = ++tick_;
  }
  if (blocks_.active()) blocks_.warp_barrier(w, ++tick_);
  if (threads_.active()) threads_.warp_barrier(w, mask, tick_++);
}

void Checker::fence() {
  ++tick_;
  blocks_.fence(thread_, tick_, barrier_tick_);
}

void Checker::add_shared(const SharedSlot& slot) {
  Region r;
  r.begin = slot.begin;
  r.bytes = slot.bytes;
  r.cells =
      static_cast<Cell*>(shared_cells_.data()) + static_cast<std::size_t>(slot.begin - arena_) / 4;
  r.name = slot.name;
  r.element = slot.element;
  if (shared_.size() == shared_.capacity()) last_ = &none_;  // the regions move
  shared_.push_back(r);
}

bool Checker::ask_order(std::uint32_t op) {
  if (!op_happens_before(op, op_)) return false;
  known_[op % kKnown] = op;
  return true;
}

// Returns true if an access of `who`, at warp clock `clock`, happened before the running thread's
// current access, of which `tick` is the time. Only valid within one interval between block
// barriers. Accesses that threads_ has recorded are checked by it.
bool Checker::ordered(std::uint16_t who, std::uint16_t clock, std::uint32_t lanes,
                      std::uint32_t tick) const noexcept {
  if (who == me()) return true;
  // of accesses before the block's first such barrier, single threads are known
  if (threads_.active() &&
      (threads_.recorded(tick) || who >= kWarp || threads_.knows(thread_, who - 1u, tick)))
    return true;
  const unsigned w = thread_ / 32;
  const auto& knows = clock_[w][thread_ % 32];
  if (who < kWarp) {
    const unsigned other = who - 1u;
    return other / 32 == w && knows[other % 32] > clock;
  }
  if (who != (kWarp | w)) return false;
  for (unsigned j = 0; lanes != 0; ++j, lanes >>= 1)
    if ((lanes & 1) && j != thread_ % 32 && knows[j] <= clock) return false;
  return true;
}

unsigned Checker::first_writer(const Cell& c, unsigned mask) {
  for (unsigned b = 0; b < 4; ++b)
    if ((mask >> b & 1) && c.writer[b] != 0) return c.writer[b];
  return 0;
}

// Checks an access against the last write to the bytes of `mask`.
inline void Checker::check_writers(Region& r, Cell& c, unsigned mask, const char* a, Access mode,
                                   Site site) {
  if (c.others != 0) check_others(r, c, mask, a, mode, site);
  if (is_atomic(mode) && c.atomic) return;
  if (mode == Access::read && c.many_atomics) check_atomics(r, c, a, site);
  if (c.write_tick >= barrier_tick_) {
    // allowed: the last thread to increment a counter resets it
    if (c.atomic && mode == Access::write && last_atomic_ == a) return;
    for (unsigned b = 0; b < 4; ++b)
      if ((mask >> b & 1) && c.writer[b] != 0 &&
          !ordered(c.writer[b], c.write_clock, 0, c.write_tick))
        leave_after([&] {
          note_race(r, a + b, mode, site, c.writer[b], c.atomic ? "updated atomically" : "wrote",
                    c.write_site, "with no barrier in between");
        });
    return;
  }
  if (r.shared() || c.write_tick == 0 || c.write_tick >= block_tick_) return;
  if (c.write_tick < launch_tick_) {
    if ((c.write_bytes & mask) != 0 && !op_ordered(c.write_op))
      leave_after([&] { note_stream_race(r, a, mode, site, c.write_op, "writes", c.write_site); });
    return;
  }
  const unsigned writer = first_writer(c, mask);
  if (writer != 0 && !blocks_.ordered(c.write_tick, writer - 1, thread_, barrier_tick_))
    leave_after([&] {
      note_race(r, a, mode, site, kMany,
                c.atomic ? "of another block updated atomically" : "of another block wrote",
                c.write_site, kNoBlockOrder);
    });
}

// Checks a write against the reads since the last write.
inline void Checker::check_readers(Region& r, Cell& c, unsigned mask, const char* a, Access mode,
                                   Site site) {
  if (!r.shared()) {
    if (c.read_op != 0 && (c.read_bytes & mask) != 0 && !op_ordered(c.read_op))
      leave_after([&] { note_stream_race(r, a, mode, site, c.read_op, "reads", c.read_site); });
  }
  if (c.read_tick < launch_tick_) return;
  if (!r.shared() && (c.constant & mask) != 0)
    leave_after([&] {
      note_race(r, a, mode, site, kMany, "read by __ldg", c.read_site,
                "whose memory no thread of the grid may write: it can return old values");
    });
  if (c.read_tick >= barrier_tick_) {
    for (unsigned b = 0; b < 4; ++b)
      if ((mask >> b & 1) && c.reader[b] != 0 &&
          !ordered(c.reader[b], c.read_clock, c.read_lanes, c.read_tick))
        leave_after([&] {
          note_race(r, a + b, mode, site, c.reader[b], "read", c.read_site,
                    "with no barrier in between");
        });
  }
  if (r.shared()) return;
  const bool many = (c.many_blocks & mask) != 0;
  bool elsewhere = false;
  if (c.read_tick < block_tick_)
    for (unsigned b = 0; b < 4; ++b) elsewhere |= (mask >> b & 1) && c.reader[b] != 0;
  if (!many && !elsewhere) return;
  const unsigned who =
      c.reader[0] != 0 && c.reader[0] < kWarp ? c.reader[0] - 1u : BlockOrder::kAnyThread;
  const bool fine = many ? blocks_.all_ordered(thread_, barrier_tick_)
                         : blocks_.ordered(c.read_tick, who, thread_, barrier_tick_);
  if (!fine)
    leave_after([&] {
      note_race(r, a, mode, site, kMany, "of another block read", c.read_site,
                "with no order between the blocks");
    });
}

inline void Checker::read_cell(Region& r, Cell& c, unsigned mask, const char* a, Site site) {
  check_writers(r, c, mask, a, Access::read, site);
  if (r.shared() && (c.write_tick < block_tick_ || (c.initialised & mask) != mask))
    leave_after([&] {
      note_uninitialised(r, a, site, c.write_tick >= block_tick_ && (c.in_flight & mask) != 0);
    });
  const std::uint16_t self = me(), clock = now();
  if (c.read_tick < barrier_tick_) {  // the first read of this interval
    if (!r.shared()) {
      if (c.read_tick < launch_tick_) c.many_blocks = 0, c.constant = 0;
      else if (c.read_tick < block_tick_)
        for (unsigned b = 0; b < 4; ++b)
          c.many_blocks =
              static_cast<std::uint8_t>((c.many_blocks | (c.reader[b] != 0 ? 1u << b : 0u)) & 15);
    }
    store(c.reader, mask == 15 ? all_bytes(self) : 0);
    if (mask != 15)
      for (unsigned b = 0; b < 4; ++b)
        if (mask >> b & 1) c.reader[b] = self;
    c.read_clock = clock;
    c.read_lanes = 1u << (thread_ % 32);
  } else if (mask == 15 && load(c.reader) == all_bytes(self)) {
    c.read_clock = clock;
  } else {
    const auto several = static_cast<std::uint16_t>(kWarp | thread_ / 32);
    const bool whole = mask == 15 && load(c.reader) == all_bytes(several) &&
                       !ordered(several, c.read_clock, c.read_lanes, c.read_tick);
    bool joined = whole;
    if (!whole)
      for (unsigned b = 0; b < 4; ++b) {
        if (!(mask >> b & 1)) continue;
        std::uint16_t& who = c.reader[b];
        if (who == 0 || ordered(who, c.read_clock, c.read_lanes, c.read_tick)) who = self;
        else if (who == several || (who < kWarp && (who - 1u) / 32 == thread_ / 32))
          who = several, joined = true;
        else who = kMany;
      }
    c.read_lanes = (joined ? c.read_lanes : 0) | 1u << (thread_ % 32);
    bool kept = joined;
    for (unsigned b = 0; b < 4; ++b) kept |= !(mask >> b & 1) && c.reader[b] != 0;
    // the older clock: a missed race is better than a false one
    c.read_clock = kept ? std::min(c.read_clock, clock) : clock;
  }
  if (!r.shared() && (c.read_op != op_ || (c.read_bytes & mask) != mask)) set_reader_op(c, mask);
  c.read_tick = tick_;
  c.read_site = site;
}

// A load_acquire is checked as an atomic, but a word keeps its last write.
void Checker::acquire_cell(Region& r, Cell& c, unsigned mask, const char* a, Site site) {
  check_writers(r, c, mask, a, Access::acquire, site);
  if (r.shared()) return;  // load_acquire refuses it
  if (c.read_op != op_ || (c.read_bytes & mask) != mask) set_reader_op(c, mask);
  if (c.read_tick < launch_tick_) c.read_site = site;
  note_acquire(c, mask, site);
}

inline void Checker::write_cell(Region& r, Cell& c, unsigned mask, const char* a, Access mode,
                                Site site) {
  check_writers(r, c, mask, a, mode, site);
  check_readers(r, c, mask, a, mode, site);
  const bool atomic = is_atomic(mode);
  if (!atomic && !acquires_.empty()) check_acquires(r, c, mask, a, site);
  if (r.shared() && mode == Access::atomic &&
      (c.write_tick < block_tick_ || (c.initialised & mask) != mask))
    leave_after([&] { note_uninitialised(r, a, site, false); });
  const std::uint16_t self = me();
  std::uint16_t clock = now();
  if (atomic) last_atomic_ = a;
  if (atomic && c.atomic && c.write_tick >= launch_tick_) {
    note_atomic(c, mask);
    clock = c.write_clock;
  } else {
    c.many_atomics = 0;
    if (mask == 15) {
      store(c.writer, all_bytes(self));
    } else {
      if (c.write_tick < barrier_tick_) store(c.writer, 0);
      for (unsigned b = 0; b < 4; ++b) {
        if (mask >> b & 1) c.writer[b] = self;
        else if (c.writer[b] != 0 && c.write_clock != clock) {
          if (ordered(c.writer[b], c.write_clock, 0, c.write_tick)) c.writer[b] = 0;
          else clock = std::min(clock, c.write_clock);
        }
      }
    }
  }
  c.initialised =
      static_cast<std::uint8_t>((c.write_tick < block_tick_ ? mask : c.initialised | mask) & 15);
  c.in_flight = 0;
  if (!r.shared() &&
      (c.write_tick < launch_tick_ || c.write_op != op_ || (c.write_bytes & mask) != mask ||
       c.others != 0 || (c.read_bytes & mask) != 0))
    set_writer_op(c, mask, mode);
  c.atomic = atomic ? 1 : 0;
  c.write_tick = tick_;
  c.write_clock = clock;
  c.write_site = site;
}

// Reports bytes that are not allocated and, for reads and atomics, bytes that are not initialised.
// Writes and atomics mark bytes as initialised.
inline void Checker::check_global(Region& r, const char* a, std::size_t offset, std::size_t bytes,
                                  Access mode, Site site) {
  std::uint8_t* state = r.state + offset / 4;
  if (bytes == 4 && offset % 4 == 0) {
    if (*state == 0xff) return;
  } else if (bytes == 16 && offset % 4 == 0) {
    std::uint32_t four;
    std::memcpy(&four, state, 4);
    if (four == 0xffffffffu) return;
  }
  for (std::size_t done = 0; done < bytes; ++state) {
    const std::size_t from = (offset + done) % 4,
                      to = std::min<std::size_t>(4, from + bytes - done);
    const auto mask = static_cast<unsigned>((1u << to) - (1u << from));
    if ((*state & mask) != mask) leave_after([&] { note_state(r, a + done, bytes, mode, site); });
    if (mode != Access::write && (*state >> 4 & mask) != mask)
      leave_after([&] { note_uninitialised(r, a + done, site, false); });
    if (mode != Access::read) *state = static_cast<std::uint8_t>(*state | mask << 4);
    done += to - from;
  }
}

void Checker::access(const void* p, std::size_t bytes, Access mode, Site site, bool aligned) {
  const char* a = static_cast<const char*>(p);
  if (static_cast<std::size_t>(a - stack_) < stack_bytes_ ||
      static_cast<std::size_t>(a - variables_) < variables_bytes_ || bytes == 0)
    return;
  Region* r = last_;
  if (!r->holds(a)) {
    r = find(a, bytes, mode, site);
    if (!r) return;
    last_ = r;
  }
  if (--until_delay_ == 0) {
    until_delay_ = scheduler_->delay();  // before the switch: it counts for all threads
    scheduler_->let_others_run();
    return access(p, bytes, mode, site, aligned);
  }
  if (++accesses_ >= deadline_)
    report(Finding::spin_wait, r, site, [&] {
      if (mode == Access::acquire)
        return str(waits_for_a_flag(progress_limit_), ", ", describe(*r, a));
      return str(progress_limit_,
                 " accesses of the block (BRAID_SIMT_PROGRESS_LIMIT) without a thread that "
                 "returned, the last of ",
                 describe(*r, a));
    });
  const auto offset = static_cast<std::size_t>(a - r->begin);
  if (aligned && (reinterpret_cast<std::uintptr_t>(a) & (bytes - 1)) != 0 && bytes <= 16 &&
      std::has_single_bit(bytes))
    report(Finding::misaligned, r, site, [&] {
      return str(mode == Access::read ? "reads " : "writes ", bytes, " bytes of ", describe(*r, a),
                 ": expected an address that is a multiple of ", bytes);
    });
  if (bytes > r->bytes - offset)
    report(Finding::out_of_bounds, r, site, [&] {
      return str(mode == Access::read ? "reads " : "writes ", bytes, " bytes past the end of ",
                 describe(*r, a));
    });
  if (mode == Access::read) {
    if (a != spin_[0] && a != spin_[1]) {
      spin_[1] = spin_[0];
      spin_[0] = a;
      idle_ = 0;
    } else if (++idle_ >= spin_limit_) {
      report(Finding::spin_wait, r, site, [&] {
        return str(spin_limit_, " reads of ", describe(*r, a),
                   " without a barrier or a write in between; nobody else runs meanwhile");
      });
    }
  } else {
    idle_ = 0;
  }
  if (profiler_)
    profiler_->access(site, thread_, reinterpret_cast<std::uintptr_t>(a), bytes, r->shared());
  if (!r->shared())
    check_global(*r, a, offset, bytes, mode == Access::release ? Access::write : mode, site);
  if (mode == Access::atomic && blocks_.active() && !r->shared())
    blocks_.atomic(a, thread_, tick_, barrier_tick_);
  Cell* c = r->cells + offset / 4;
  for (std::size_t done = 0; done < bytes; ++c) {
    const std::size_t from = (offset + done) % 4,
                      to = std::min<std::size_t>(4, from + bytes - done);
    const auto mask = static_cast<unsigned>((1u << to) - (1u << from));
    const char* word = a + done - from;
    if (threads_.active()) check_threads(*r, *c, mask, word, mode, site);
    if (mode == Access::read) read_cell(*r, *c, mask, word, site);
    else if (mode == Access::acquire) acquire_cell(*r, *c, mask, word, site);
    else write_cell(*r, *c, mask, word, mode, site);
    done += to - from;
  }
}

void Checker::range(Region& r, const char* p, std::size_t bytes, bool write) {
  const auto offset = static_cast<std::size_t>(p - r.begin);
  const Access mode = write ? Access::write : Access::read;
  if (bytes > r.bytes - offset)
    report(Finding::out_of_bounds, &r, 0, [&] {
      return str(write ? "writes " : "reads ", bytes, " bytes, past the end of ", describe(r, p));
    });
  Cell* c = r.cells + offset / 4;
  const std::uint8_t* state = r.state + offset / 4;
  for (std::size_t done = 0; done < bytes; ++c, ++state) {
    const std::size_t from = (offset + done) % 4,
                      to = std::min<std::size_t>(4, from + bytes - done);
    const auto mask = static_cast<unsigned>((1u << to) - (1u << from));
    const char* word = p + done - from;
    if ((*state & mask) != mask) leave_after([&] { note_state(r, p + done, bytes, mode, 0); });
    if (c->others != 0) check_others(r, *c, mask, word, mode, 0);
    if ((c->write_bytes & mask) != 0 && !op_ordered(c->write_op))
      leave_after(
          [&] { note_stream_race(r, word, mode, 0, c->write_op, "writes", c->write_site); });
    if (write) {
      check_readers(r, *c, mask, word, mode, 0);
      set_writer_op(*c, mask, mode);
      c->write_tick = tick_;
      c->write_site = 0;
      c->read_tick = 0;
      c->atomic = c->many_atomics = 0;
    } else {
      if (c->read_op != op_) store(c->reader, 0);
      set_reader_op(*c, mask);
      c->read_tick = tick_;
      c->read_site = 0;
    }
    done += to - from;
  }
}

}  // namespace braid::simt
