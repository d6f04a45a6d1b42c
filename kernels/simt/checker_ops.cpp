// What the checker records for words that several operations, or atomics of several threads and
// blocks, have accessed.
#include <algorithm>
#include <bit>
#include <cstring>

#include "simt/checker.hpp"

namespace braid::simt {

// Checks accesses of operations that are not ordered with the last write and the last read of the
// word.
void Checker::check_others(Region& r, const Cell& c, unsigned mask, const char* a, Access mode,
                           Site site) {
  for (const OpAccess& other : sets_[c.others]) {
    if ((other.bytes & mask) == 0 || other.op == op_) continue;
    if (mode == Access::read && other.kind == OpAccess::read) continue;
    if (mode == Access::atomic && other.kind == OpAccess::atomic) continue;
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
                earlier.site,
                "with no order between the blocks: a __threadfence before the atomic that "
                "announces it makes one");
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
    if ((mask >> b & 1) && w != 0 && w != self && !ordered(w, c.write_clock, 0)) kept[count++] = w;
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
  const bool atomic = mode == Access::atomic;
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

}  // namespace braid::simt
