// Branches, barriers, and operations of the lanes of a warp.
#include "ptx/threads.hpp"

#include "ptx/decode.hpp"

namespace ptx {

namespace {

Next jump(Thread& t, const Instruction& i) {
  t.pc = i.target;
  return Next::jump;
}
Next leave(Thread& t, const Instruction&) {
  land(t, t.group + 1);
  t.state = State::over;
  return Next::leave;
}
/// Threads run one at a time, so memory is always in order.
Next fence(Thread&, const Instruction&) { return Next::go_on; }
Next await_block(Thread& t, const Instruction& i) {
  t.state = State::at_barrier;
  t.barrier = get<std::int32_t>(t.r[i.a]);
  t.arrivals = i.b > 0 ? get<std::int32_t>(t.r[i.b]) : -1;
  return Next::wait;
}
Next await_warp(Thread& t, const Instruction& i) {
  t.state = State::in_warp;
  t.mask = get<std::uint32_t>(t.r[i.e]);
  return Next::wait;
}

void branch(Line& line) {
  line.take("uni");
  line.count(1, 1);
  line.names.branch(line.operands[0]);
  line.i.run = &jump;
}
template <Run run> void alone(Line& line) {
  line.count(0, 0);
  line.i.run = run;
}
void memory_fence(Line& line) {
  line.one_of({"gl", "cta", "sys"});
  alone<fence>(line);
}
void ordering_fence(Line& line) {
  line.one_of({"acq_rel", "sc"});
  line.one_of({"gpu", "cta", "sys"});
  alone<fence>(line);
}
/// bar.red.or.pred p, barrier, threads, c: every thread gets whether c holds in one of them; .and:
/// in all.
void voting_barrier(Line& line) {
  const int which = line.one_of({"or", "and"});
  line.expect("pred");
  line.count(3, 4);
  std::string& p = line.operands.back();
  line.i.offset = p.front() == '!';
  if (line.i.offset != 0) p = p.substr(1);
  line.i.d = line.value(0), line.i.a = line.value(1);
  if (line.operands.size() == 4) line.i.b = line.value(2);
  line.i.c = line.value(line.operands.size() - 1);
  line.i.kind = static_cast<int>(which == 0 ? WarpOp::any : WarpOp::all);
  line.i.run = &await_block;
}
void barrier(Line& line) {
  if (line.take("red")) return voting_barrier(line);
  const bool of_warp = line.take("warp");
  line.expect("sync");
  line.count(1, of_warp ? 1 : 2);
  line.i.run = of_warp ? &await_warp : &await_block;
  (of_warp ? line.i.e : line.i.a) = line.value(0);
  if (line.operands.size() == 2) line.i.b = line.value(1);
  line.i.kind = static_cast<int>(WarpOp::sync);
}
void shuffle(Line& line) {
  line.expect("sync"), line.expect("b32");
  line.i.kind = static_cast<int>(WarpOp::up) + line.one_of({"up", "down", "bfly", "idx"});
  line.i.target = line.second(line.operands.at(0));
  line.registers(5);
  line.i.run = &await_warp;
}
void vote(Line& line) {
  line.expect("sync");
  const int which = line.one_of({"ballot", "any", "all"});
  line.expect(which == 0 ? "b32" : "pred");
  line.i.kind = static_cast<int>(WarpOp::ballot) + which;
  line.count(3, 3);
  std::string& p = line.operands[1];
  line.i.offset = p.front() == '!';
  if (line.i.offset != 0) p = p.substr(1);
  line.i.d = line.value(0), line.i.a = line.value(1), line.i.e = line.value(2);
  line.i.run = &await_warp;
}

/// The lane that a shuffle reads. The code follows the pseudocode in the manual.
struct Source {
  unsigned lane;
  bool inside;
};
Source source(const Instruction& i, unsigned lane, std::uint64_t b, std::uint64_t c) {
  const auto by = static_cast<unsigned>(b & 31), clamp = static_cast<unsigned>(c & 31),
             segment = static_cast<unsigned>(c >> 8 & 31);
  const unsigned most = (lane & segment) | (clamp & ~segment & 31), least = lane & segment;
  unsigned j = lane;
  bool inside = true;
  switch (static_cast<WarpOp>(i.kind)) {
    case WarpOp::up:
      inside = static_cast<int>(lane) - static_cast<int>(by) >= static_cast<int>(most),
      j = lane - by;
      break;
    case WarpOp::down: j = lane + by, inside = j <= most; break;
    case WarpOp::butterfly: j = lane ^ by, inside = j <= most; break;
    default: j = least | (by & ~segment), inside = j <= most; break;
  }
  return {inside ? j : lane, inside};
}

}  // namespace

void meet(const Instruction& i, Thread* first, unsigned count, std::uint32_t mask) {
  if (i.matrix != MatrixOp::none) {
    if (count < 32) throw Error("a matrix operation in a warp of " + std::to_string(count));
    return meet_all(i, first);
  }
  const auto op = static_cast<WarpOp>(i.kind);
  const auto in = [&](unsigned lane) { return (mask >> lane & 1) != 0; };
  std::uint64_t given[32];
  std::uint32_t ballot = 0;
  for (unsigned l = 0; l < count; ++l)
    if (in(l)) {
      given[l] = first[l].r[i.a];
      if ((given[l] != 0) != (i.offset != 0)) ballot |= 1u << l;
    }
  for (unsigned l = 0; l < count; ++l) {
    if (!in(l)) continue;
    std::uint64_t* r = first[l].r;
    if (op >= WarpOp::ballot) {
      r[i.d] = op == WarpOp::ballot ? ballot : op == WarpOp::any ? ballot != 0 : ballot == mask;
    } else if (op != WarpOp::sync) {
      const Source from = source(i, l, r[i.b], r[i.c]);
      if (from.lane >= count || !in(from.lane))
        throw Error("shfl reads lane " + std::to_string(from.lane) + ", which takes no part");
      r[i.d] = given[from.lane] & 0xffffffff;
      if (i.target >= 0) r[i.target] = from.inside;
    }
  }
}

void vote_at_barrier(const Program& program, std::vector<Thread>& threads) {
  bool any = false, all = true;
  const auto at = [&](const Thread& t) -> const Instruction& {
    return program.code[static_cast<std::size_t>(t.pc)];
  };
  for (const Thread& t : threads) {
    if (t.state != State::at_barrier) continue;
    const bool holds = (t.r[at(t).c] != 0) != (at(t).offset != 0);
    any = any || holds, all = all && holds;
  }
  for (Thread& t : threads)
    if (t.state == State::at_barrier)
      t.r[at(t).d] = static_cast<WarpOp>(at(t).kind) == WarpOp::any ? any : all;
}

const Decoders& thread_decoders() {
  static const Decoders table{
      {"bra", branch},           {"ret", alone<leave>},
      {"exit", alone<leave>},    {"membar", memory_fence},
      {"fence", ordering_fence}, {"bar", barrier},
      {"shfl", shuffle},         {"vote", vote},
  };
  return table;
}

}  // namespace ptx
