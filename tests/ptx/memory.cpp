// Loads, stores, atomic operations and asynchronous copies.
#include <algorithm>

#include "ptx/decode.hpp"
#include "ptx/module.hpp"

namespace ptx {

namespace {

// of one thread
constexpr std::uint32_t kMostAcquires = 1 << 18;

struct Load {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const auto address = t.r[i.a] + static_cast<std::uint64_t>(i.offset);
    const unsigned count = i.lanes == 0 ? 1 : static_cast<unsigned>(i.lanes);
    const char* from = locate(t, i.space, address, count * sizeof(T), false);
    T values[4];
    std::memcpy(values, from, count * sizeof(T));
    if (i.lanes == 0) t.r[i.d] = put(values[0]);
    for (std::size_t k = 0; k < static_cast<std::size_t>(i.lanes); ++k)
      if (i.lane[k] >= 0) t.r[i.lane[k]] = put(values[k]);
    return Next::go_on;
  }
};
/// The thread may wait for a flag, so others run after each load.
struct Acquire {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    Load::run<T>(t, i);
    if (++t.acquired == kMostAcquires)
      throw Error("ld.acquire waits for a value that no block which has begun will write");
    ++t.pc;
    return Next::wait;
  }
};
struct Store {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const auto address = t.r[i.a] + static_cast<std::uint64_t>(i.offset);
    const unsigned count = i.lanes == 0 ? 1 : static_cast<unsigned>(i.lanes);
    char* to = locate(t, i.space, address, count * sizeof(T), true);
    T values[4] = {get<T>(t.r[i.b])};
    for (std::size_t k = 0; k < static_cast<std::size_t>(i.lanes); ++k)
      values[k] = get<T>(t.r[i.lane[k]]);
    std::memcpy(to, values, count * sizeof(T));
    return Next::go_on;
  }
};
enum class AtomicOp : std::uint8_t { exchange, compare, add, increment };
/// kind: an AtomicOp. Threads run one at a time, so each operation is one step.
struct Atomic {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const auto address = t.r[i.a] + static_cast<std::uint64_t>(i.offset);
    char* at = locate(t, i.space, address, sizeof(T), true);
    T before;
    std::memcpy(&before, at, sizeof(T));
    const T b = get<T>(t.r[i.b]);
    T after = b;
    switch (static_cast<AtomicOp>(i.kind)) {
      case AtomicOp::exchange: break;
      case AtomicOp::compare: after = before == b ? get<T>(t.r[i.c]) : before; break;
      case AtomicOp::add: after = static_cast<T>(before + b); break;
      case AtomicOp::increment: after = before >= b ? T(0) : static_cast<T>(before + 1); break;
    }
    std::memcpy(at, &after, sizeof(T));
    t.r[i.d] = put(before);
    return Next::go_on;
  }
};

/// The bytes arrive as late as possible: when the thread waits for them.
Next begin_copy(Thread& t, const Instruction& i) {
  Copy copy{t.r[i.d] + static_cast<std::uint64_t>(i.offset),
            t.r[i.a] + static_cast<std::uint64_t>(i.source_offset), static_cast<unsigned>(i.kind),
            static_cast<unsigned>(i.kind), t.group};
  if (i.b > 0) copy.taken = std::min(copy.bytes, get<std::uint32_t>(t.r[i.b]));
  locate(t, Space::shared, copy.to, copy.bytes, true);
  if (copy.from % copy.bytes != 0) throw Error("cp.async: misaligned source");
  if (copy.taken > 0 && allows != nullptr && !allows(copy.from, copy.taken, false))
    throw Error("cp.async: illegal read");
  t.copies.push_back(copy);
  return Next::go_on;
}
Next commit(Thread& t, const Instruction&) {
  ++t.group;
  return Next::go_on;
}
/// kind: how many of the newest groups may stay in flight; -1: none, including uncommitted copies.
Next wait(Thread& t, const Instruction& i) {
  land(t, i.kind < 0 ? t.group + 1 : t.group - i.kind);
  return Next::go_on;
}

const Window& window(const Thread& t, Space space) {
  return space == Space::shared ? t.shared : t.local;
}
Next to_generic(Thread& t, const Instruction& i) {
  t.r[i.d] = t.r[i.a] + reinterpret_cast<std::uint64_t>(window(t, i.space).data);
  return Next::go_on;
}
Next from_generic(Thread& t, const Instruction& i) {
  t.r[i.d] = t.r[i.a] - reinterpret_cast<std::uint64_t>(window(t, i.space).data);
  return Next::go_on;
}
Next same(Thread& t, const Instruction& i) {
  t.r[i.d] = t.r[i.a];
  return Next::go_on;
}

/// The types of atom.add.
using Sums =
    decltype(Types<Type<std::uint32_t, 'u'>, Type<std::int32_t, 's'>, Type<std::uint64_t, 'u'>>{} |
             Floats{});

// ---- decoding
Space space(Line& line) {
  for (const auto& [name, space] : {std::pair{"global", Space::global},
                                    {"const", Space::global},
                                    {"shared", Space::shared},
                                    {"local", Space::local},
                                    {"param", Space::param}})
    if (line.take(name)) return space;
  return Space::generic;
}
template <class Op> void access(Line& line) {
  constexpr bool loads = std::is_same_v<Op, Load>;
  const std::string type = line.type();
  // Threads run one at a time, so a store with release is as any other.
  const bool ordered = line.take(loads ? "acquire" : "release");
  if (ordered) line.one_of({"gpu", "cta", "sys"});
  line.i.space = space(line);
  if (loads && !ordered && line.i.space == Space::global) line.take("nc");
  const std::size_t wanted = line.take("v2") ? 2 : line.take("v4") ? 4 : 0;
  line.count(2, 2);
  const std::size_t value = loads ? 0 : 1;
  line.i.a = line.address(1 - value, line.i.offset);
  if (!line.vector(value)) (loads ? line.i.d : line.i.b) = line.value(value);
  if (static_cast<std::size_t>(line.i.lanes) != wanted) line.unknown();
  line.i.run =
      loads && ordered ? pick<Acquire>(type, All{} | Bytes{}) : pick<Op>(type, All{} | Bytes{});
}
void atomic(Line& line) {
  const std::string type = line.type();
  // one thread runs at a time, so every order is as this one
  if (line.take("acq_rel")) line.one_of({"gpu", "cta", "sys"});
  line.i.space = space(line);
  line.i.kind = line.one_of({"exch", "cas", "add", "inc"});
  const auto op = static_cast<AtomicOp>(line.i.kind);
  const std::size_t count = op == AtomicOp::compare ? 4 : 3;
  line.count(count, count);
  line.i.d = line.value(0), line.i.a = line.address(1, line.i.offset), line.i.b = line.value(2);
  if (count == 4) line.i.c = line.value(3);
  line.i.run = op == AtomicOp::add         ? pick<Atomic>(type, Sums{})
               : op == AtomicOp::increment ? pick<Atomic>(type, Types<Type<std::uint32_t, 'u'>>{})
                                           : pick<Atomic>(type, Bits{});
}
void copy(Line& line) {
  line.expect("async");
  if (line.take("commit_group")) {
    line.i.run = &commit;
  } else if (line.take("wait_all")) {
    line.i.run = &wait, line.i.kind = -1;
  } else if (line.take("wait_group")) {
    line.count(1, 1);
    line.i.run = &wait, line.i.kind = std::stoi(line.operands[0]);
  } else {
    const bool through_l2_only = line.one_of({"ca", "cg"}) == 1;
    line.expect("shared"), line.expect("global");
    line.count(3, 4);
    line.i.d = line.address(0, line.i.offset), line.i.a = line.address(1, line.i.source_offset);
    const int bytes = std::stoi(line.operands[2]);
    if (bytes != 16 && (through_l2_only || (bytes != 4 && bytes != 8))) line.unknown();
    line.i.kind = bytes;
    if (line.operands.size() == 4) line.i.b = line.value(3);
    line.i.run = &begin_copy;
  }
}
void convert_address(Line& line) {
  line.expect("u64");
  const bool to = line.take("to");
  line.i.space = space(line);
  line.i.run = line.i.space == Space::global  ? &same
               : line.i.space == Space::param ? nullptr
               : to                           ? &from_generic
                                              : &to_generic;
  line.registers(2);
}

}  // namespace

void land(Thread& t, int group) {
  std::size_t kept = 0;
  for (const Copy& copy : t.copies) {
    if (copy.group >= group) {
      t.copies[kept++] = copy;
      continue;
    }
    char* to = locate(t, Space::shared, copy.to, copy.bytes, true);
    std::memcpy(to, reinterpret_cast<const char*>(copy.from), copy.taken);
    std::memset(to + copy.taken, 0, copy.bytes - copy.taken);
  }
  t.copies.resize(kept);
}

const Decoders& memory_decoders() {
  static const Decoders table{
      {"ld", access<Load>}, {"st", access<Store>},     {"atom", atomic},
      {"cp", copy},         {"cvta", convert_address},
  };
  return table;
}

}  // namespace ptx
