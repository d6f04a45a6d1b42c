// What the checker records for words that several operations, or atomics of several threads and
// blocks, have accessed, and in blocks with barriers of some threads; and the accesses of __ldg and
// cp.async.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "simt/checker.hpp"

namespace braid::simt {

// Checks accesses of operations that are not ordered with the last write and the last read of the
// word.
void Checker::check_others(Region& r, const Cell& c, unsigned mask, const char* a, Access mode,
                           Site site) {
  for (const OpAccess& other : sets_[c.others]) {
    if ((other.bytes & mask) == 0 || other.op == op_) continue;
    if (reads_only(mode) && other.kind == OpAccess::read) continue;
    if (is_atomic(mode) && other.kind == OpAccess::atomic) continue;
    if (!op_ordered(other.op))
      leave_after([&] {
        note_stream_race(r, a, mode, site, other.op,
                         other.kind == OpAccess::read ? "reads" : "writes", 0);
      });
  }
}

// Checks a plain read of a word that several blocks have updated atomically.
void Checker::check_atomics(Region& r, Cell& c, const char* a, Site site) {
  if (c.write_tick < launch_tick_) return;
  const auto found = earlier_atomics_.find(&c);
  if (found == earlier_atomics_.end()) return;
  const EarlierAtomic& earlier = found->second;
  if (!blocks_.ordered(earlier.tick, earlier.thread, thread_, barrier_tick_))
    leave_after([&] {
      note_race(r, a, Access::read, site, kMany, "of another block updated atomically",
                earlier.site, kNoBlockOrder);
    });
}

// Records an atomic on a word whose last write in this grid was an atomic too. Earlier atomics are
// kept if they are not ordered before this one. Within the same interval, the entries of `writer`
// hold up to four threads, latest first, and write_clock is the oldest of their clocks. Of other
// blocks, one atomic is kept.
void Checker::note_atomic(Cell& c, unsigned mask) {
  const std::uint16_t self = me(), clock = now();
  if (c.write_tick < barrier_tick_) {
    unsigned before = 0;
    for (const std::uint16_t w : c.writer) before = before == 0 ? w : before;
    if (c.write_tick < block_tick_ && !c.many_atomics && before != 0) {
      earlier_atomics_[&c] = {c.write_tick, before - 1, c.write_site};
      c.many_atomics = 1;
    }
    for (unsigned b = 0; b < 4; ++b) c.writer[b] = 0;
    c.writer[std::countr_zero(mask)] = self;
    c.write_clock = clock;
    return;
  }
  std::uint16_t kept[4] = {self};
  unsigned count = 1;
  for (unsigned b = 0; b < 4 && count < 4; ++b) {
    const std::uint16_t w = c.writer[b];
    if ((mask >> b & 1) && w != 0 && w != self && !ordered(w, c.write_clock, 0, c.write_tick))
      kept[count++] = w;
  }
  unsigned next = 0;
  bool others = false;
  for (unsigned b = 0; b < 4; ++b) {
    if (mask >> b & 1) {
      others |= next > 0 && next < count;
      c.writer[b] = next < count ? kept[next] : std::uint16_t{0};
      ++next;
    } else {
      others |= c.writer[b] != 0;
    }
  }
  c.write_clock = others ? std::min(c.write_clock, clock) : clock;
}

void Checker::set_writer_op(Cell& c, unsigned mask, Access mode) {
  const auto bytes = static_cast<std::uint8_t>(mask & 15);
  const bool atomic = is_atomic(mode);
  if (c.write_op != op_ || c.write_tick < launch_tick_) {  // a launch without a runtime is op 0
    // Keep what is not ordered with this write: other bytes and, for an atomic, other atomics.
    if (c.write_bytes != 0 && c.write_op != 0 && !op_ordered(c.write_op)) {
      const unsigned left = atomic && c.atomic ? c.write_bytes : c.write_bytes & ~mask & 15u;
      if (left != 0)
        c.others = sets_.with(c.others,
                              {c.write_op, static_cast<std::uint8_t>(left),
                               c.atomic ? OpAccess::atomic : OpAccess::write},
                              [&](const OpAccess& other) { return op_ordered(other.op); });
    }
    c.write_op = op_;
    c.write_bytes = 0;
  }
  c.write_bytes = static_cast<std::uint8_t>((c.write_bytes | bytes) & 15);
  if (c.others != 0 && bytes != 0)
    c.others = sets_.without(c.others, mask, [&](const OpAccess& other) {
      return !(atomic && other.kind == OpAccess::atomic && !op_ordered(other.op));
    });
  c.read_bytes = static_cast<std::uint8_t>(c.read_bytes & ~mask & 15);
  if (c.read_bytes == 0) c.read_op = 0;
}

void Checker::set_reader_op(Cell& c, unsigned mask) {
  if (c.read_op != op_) {
    if (c.read_op != 0 && !op_ordered(c.read_op))
      c.others = sets_.with(c.others, {c.read_op, c.read_bytes, OpAccess::read},
                            [&](const OpAccess& other) { return op_ordered(other.op); });
    c.read_op = op_;
    c.read_bytes = 0;
  }
  c.read_bytes = static_cast<std::uint8_t>((c.read_bytes | mask) & 15);
}

void Checker::start_thread_order(unsigned threads) {
  if (!threads_.active()) threads_.start(threads, ++tick_);
}

void Checker::release(unsigned t, ThreadOrder::Clock& clock) {
  threads_.release(t, tick_, clock);
  ++tick_;
}

// Checks an access in a block that has named barriers or mbarriers.
void Checker::check_threads(Region& r, Cell& c, unsigned mask, const char* a, Access mode,
                            Site site) {
  const auto thread = static_cast<std::uint16_t>(thread_);
  const ThreadOrder::Use* const other = threads_.access(
      &c, {tick_, thread, static_cast<std::uint8_t>(mask), mode, site}, barrier_tick_);
  if (other == nullptr) return;
  leave_after([&] {
    note_race(r, a, mode, site, static_cast<std::uint16_t>(other->thread + 1),
              reads_only(other->mode)        ? "read"
              : other->mode == Access::write ? "wrote"
                                             : "updated atomically",
              other->site, "with no barrier in between that orders the two threads");
  });
}

void Checker::constant(const void* p, std::size_t bytes, Site site) {
  access(p, bytes, Access::read, site);
  const char* const a = static_cast<const char*>(p);
  Region* const r = last_;
  if (!r->holds(a)) return;  // not in memory that is checked
  if (r->shared())
    report(Finding::invalid_address, r, site,
           [&] { return str("__ldg: expected global memory, got ", describe(*r, a)); });
  const auto offset = static_cast<std::size_t>(a - r->begin);
  Cell* c = r->cells + offset / 4;
  for (std::size_t done = 0; done < bytes; ++c) {
    const std::size_t from = (offset + done) % 4,
                      to = std::min<std::size_t>(4, from + bytes - done);
    const auto mask = static_cast<std::uint8_t>((1u << to) - (1u << from));
    if (c->write_tick >= launch_tick_ && (c->write_bytes & mask) != 0)
      leave_after([&] {
        note_race(
            *r, a, Access::read, site, kMany, "wrote", c->write_site,
            "by __ldg, whose memory no thread of the grid may write: it can return old values");
      });
    c->constant |= mask;
    done += to - from;
  }
}

void Checker::async_issue(void* shared, std::size_t size, const void* global, std::size_t bytes,
                          Location where) {
  const Site site = site_of(where);
  const std::uint64_t delay = std::exchange(until_delay_, 0);
  if (bytes != 0) access(global, bytes, Access::read, site, false);
  access(shared, size, Access::write, site);
  until_delay_ = delay;
  Region* r = find_shared(static_cast<const char*>(shared));
  Cell* c = r->cells + static_cast<std::size_t>(static_cast<char*>(shared) - r->begin) / 4;
  // until the copy completes
  for (std::size_t i = 0; i < size / 4; ++i) c[i].initialised = 0, c[i].in_flight = 15;
}

void Checker::async_land(void* shared, std::size_t size, const void* global, std::size_t bytes,
                         Location where) {
  const Site site = site_of(where);
  Profiler* profiler = std::exchange(profiler_, nullptr);  // was counted at the issue
  const std::uint64_t delay = std::exchange(until_delay_, 0);
  if (bytes != 0) access(global, bytes, Access::read, site, false);
  access(shared, size, Access::write, site);
  profiler_ = profiler;
  until_delay_ = delay;
}

}  // namespace braid::simt
