// Sums, products, comparisons and bit operations.
#include "ptx/decode.hpp"
#include "ptx/float.hpp"

namespace ptx {

namespace {

using Wide = unsigned __int128;
template <class T> constexpr bool kFloat = std::is_floating_point_v<T>;
template <class T> constexpr std::size_t kWidth = 8 * sizeof(T);

// Integers wrap around.
template <class T> T plus(T a, T b) { return static_cast<T>(Wide(a) + Wide(b)); }
template <class T> T minus(T a, T b) { return static_cast<T>(Wide(a) - Wide(b)); }
template <class T> T times(T a, T b) { return static_cast<T>(Wide(a) * Wide(b)); }
/// The upper half of the product.
template <class T> T high(T a, T b) {
  using Product = std::conditional_t<std::is_signed_v<T>, __int128, Wide>;
  return static_cast<T>((Product(a) * Product(b)) >> kWidth<T>);
}
/// Division by 0, which is undefined, returns all bits set, as on the hardware.
template <class T> T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return minus(T(0), a);
  return static_cast<T>(a / b);
}

enum class Op {
  add,
  sub,
  mul,
  mad,
  mul_high,
  mad_high,
  fma,
  fma_minus,  // a b - c
  minus_fma,  // c - a b
  div,
  rem,
  min,
  max,
  neg,
  abs,
  copysign,
  and_,
  or_,
  xor_,
  not_,
  shl,
  shr,
  popc,
  clz,
  brev,
  bfi,
  prmt
};

template <Op op, class T> T number(T a, T b, T c) {
  if constexpr (op == Op::add) return a + b;
  if constexpr (op == Op::sub) return a - b;
  if constexpr (op == Op::mul) return a * b;
  if constexpr (op == Op::fma) return std::fma(a, b, c);
  if constexpr (op == Op::fma_minus) return std::fma(a, b, -c);
  if constexpr (op == Op::minus_fma) return std::fma(-a, b, c);
  if constexpr (op == Op::div) return a / b;
  if constexpr (op == Op::min) return least(a, b);
  if constexpr (op == Op::max) return greatest(a, b);
  if constexpr (op == Op::neg) return -a;
  if constexpr (op == Op::abs) return std::fabs(a);
  if constexpr (op == Op::copysign) return std::copysign(b, a);  // the sign of a
}

template <class T> T bit_count(T a) { return static_cast<T>(__builtin_popcountll(a)); }
template <class T> T reversed(T a) {
  T r = 0;
  for (T n = 0; n < kWidth<T>; ++n) r = static_cast<T>(r << 1 | (a >> n & 1));
  return r;
}
template <class T> T leading_zeros(T a) {
  T n = 0;
  while (n < kWidth<T> && (a >> (kWidth<T> - 1 - n) & 1) == 0) ++n;
  return n;
}
/// Chooses four bytes of the eight of b:a. Bit 3 of a choice replicates the byte's sign bit.
template <class T> T choose_bytes(T a, T b, T choices) {
  const std::uint64_t bytes = std::uint64_t(b) << 32 | a;
  std::uint64_t result = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const auto choice = choices >> (4 * k) & 15;
    std::uint64_t byte = bytes >> (8 * (choice & 7)) & 255;
    if ((choice & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << (8 * k);
  }
  return static_cast<T>(result);
}

template <Op op, class T> T integer(T a, T b, T c) {
  if constexpr (op == Op::add) return plus(a, b);
  if constexpr (op == Op::sub) return minus(a, b);
  if constexpr (op == Op::mul) return times(a, b);
  if constexpr (op == Op::mul_high) return high(a, b);
  if constexpr (op == Op::mad) return plus(times(a, b), c);
  if constexpr (op == Op::mad_high) return plus(high(a, b), c);
  if constexpr (op == Op::div) return quotient(a, b);
  if constexpr (op == Op::rem) return b == 0 ? a : minus(a, times(quotient(a, b), b));
  if constexpr (op == Op::min) return least(a, b);
  if constexpr (op == Op::max) return greatest(a, b);
  if constexpr (op == Op::neg) return minus(T(0), a);
  if constexpr (op == Op::abs) return a < 0 ? minus(T(0), a) : a;
  if constexpr (op == Op::and_) return static_cast<T>(a & b);
  if constexpr (op == Op::or_) return static_cast<T>(a | b);
  if constexpr (op == Op::xor_) return static_cast<T>(a ^ b);
  if constexpr (op == Op::not_) return static_cast<T>(~a);
  if constexpr (op == Op::popc) return bit_count(a);
  if constexpr (op == Op::clz) return leading_zeros(a);
  if constexpr (op == Op::brev) return reversed(a);
  if constexpr (op == Op::prmt) return choose_bytes(a, b, c);
}

/// d = op(a, b, c). For floating point: .ftz for subnormal inputs and results, the rounding of the
/// instruction, and the single NaN that the hardware produces.
template <Op op> struct Compute {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const T a = get<T>(t.r[i.a]), b = get<T>(t.r[i.b]), c = get<T>(t.r[i.c]);
    if constexpr (kFloat<T>) {
      const T x = flushed(a, i.modifiers), y = flushed(b, i.modifiers), z = flushed(c, i.modifiers);
      t.r[i.d] =
          put(finished(with_rounding<T>(i.modifiers, x, y, z,
                                        [](T p, T q, T r) { return number<op, T>(p, q, r); }),
                       i.modifiers));
    } else {
      t.r[i.d] = put(integer<op, T>(a, b, c));
    }
    return Next::go_on;
  }
};
/// .wide: the result has twice the bits. c is 0 for a product without a sum.
struct WideProduct {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    using W = decltype(wider(T()));
    const W a = get<T>(t.r[i.a]), b = get<T>(t.r[i.b]);
    t.r[i.d] = put(plus(static_cast<W>(a * b), get<W>(t.r[i.c])));
    return Next::go_on;
  }
};
/// A shift by the width or more returns zeros, or sign bits.
template <Op op> struct Shift {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const T a = get<T>(t.r[i.a]);
    const auto by = get<std::uint32_t>(t.r[i.b]);
    if (op == Op::shl) t.r[i.d] = by >= kWidth<T> ? 0 : put(static_cast<T>(t.r[i.a] << by));
    else t.r[i.d] = put(by < kWidth<T> ? static_cast<T>(a >> by) : static_cast<T>(a < 0 ? -1 : 0));
    return Next::go_on;
  }
};
/// kind 0: the distance of the highest bit from the left; 1: its position. -1 if there is none.
struct FindBit {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const T a = get<T>(t.r[i.a]);
    const auto left = static_cast<std::uint32_t>(leading_zeros(a));
    t.r[i.d] = put(a == 0        ? ~0u
                   : i.kind == 0 ? left
                                 : static_cast<std::uint32_t>(kWidth<T>) - 1 - left);
    return Next::go_on;
  }
};
/// Bits [start, start + length) of b are replaced by the lowest bits of a.
struct InsertBits {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const T a = get<T>(t.r[i.a]), b = get<T>(t.r[i.b]);
    const auto start = t.r[i.c] & 255, length = t.r[i.e] & 255;
    T mask = 0;
    for (auto k = start; k < start + length && k < kWidth<T>; ++k) mask |= T(1) << k;
    t.r[i.d] = (b & ~mask) | (start < kWidth<T> ? a << start & mask : 0);
    return Next::go_on;
  }
};
struct Select {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    t.r[i.d] = put(get<T>(t.r[t.r[i.c] != 0 ? i.a : i.b]));
    return Next::go_on;
  }
};
struct Compare {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    t.r[i.d] = compare(i.kind, flushed(get<T>(t.r[i.a]), i.modifiers),
                       flushed(get<T>(t.r[i.b]), i.modifiers));
    return Next::go_on;
  }
};
Next not_predicate(Thread& t, const Instruction& i) {
  t.r[i.d] = t.r[i.a] == 0;
  return Next::go_on;
}
/// Sums and products longer than a register. kind: add, sub, mad.lo, mad.hi. The carry flag is an
/// input if offset is not 0, and an output with .cc.
struct Carry {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const T a = get<T>(t.r[i.a]), b = get<T>(t.r[i.b]), c = get<T>(t.r[i.c]);
    const Wide in = i.offset != 0 && t.carry ? 1 : 0;
    const Wide x = i.kind == 0   ? Wide(a) + b + in
                   : i.kind == 1 ? Wide(a) - b - in
                                 : Wide(i.kind == 2 ? times(a, b) : high(a, b)) + c + in;
    if ((i.modifiers & cc) != 0) t.carry = (x >> kWidth<T> & 1) != 0;
    t.r[i.d] = static_cast<T>(x);
    return Next::go_on;
  }
};

// ---- decoding
using Long = Types<Type<std::uint32_t, 'b'>, Type<std::uint64_t, 'b'>>;

template <class Form, class List, std::size_t operands> void plain(Line& line) {
  line.i.run = pick<Form>(line.type(), List{});
  line.registers(operands);
}
/// Floating point with its modifiers, or integers.
template <Op op, class List, std::size_t operands> void rounded(Line& line) {
  const std::string type = line.type();
  if (type[0] == 'f') line.rounding();
  line.i.run = pick<Compute<op>>(type, List{});
  line.registers(operands);
}
/// Bits, or predicates, which are 0 or 1.
template <Op op, std::size_t operands> void logic(Line& line) {
  const std::string type = line.type();
  line.i.run = type == "pred" && op == Op::not_
                   ? &not_predicate
                   : pick<Compute<op>>(type == "pred" ? "b64" : type, Bits{});
  line.registers(operands);
}
bool carries(Line& line, int kind, bool in) {
  const bool out = line.take("cc");
  if (!out && !in) return false;
  if (kind == 2) kind += line.one_of({"lo", "hi"});
  line.i.kind = kind, line.i.offset = in, line.i.modifiers = out ? cc : 0u;
  line.i.run =
      pick<Carry>(line.type(), Types<Type<std::uint32_t, 'u'>, Type<std::uint64_t, 'u'>>{});
  line.registers(kind < 2 ? 3 : 4);
  return true;
}
template <Op op> void sum(Line& line) {
  if (!carries(line, op == Op::sub, false)) rounded<op, Numbers, 3>(line);
}
template <int kind> void sum_with_carry(Line& line) { carries(line, kind, true); }
template <Op low, Op high, std::size_t operands> void product(Line& line) {
  if (operands == 4 && carries(line, 2, false)) return;
  if constexpr (operands == 3)
    if (line.parts.back()[0] == 'f') return rounded<low, Floats, operands>(line);
  const std::string type = line.type();
  const int which = line.one_of({"lo", "hi", "wide"});
  line.i.run = which == 0   ? pick<Compute<low>>(type, Integers{})
               : which == 1 ? pick<Compute<high>>(type, Integers{})
                            : pick<WideProduct>(type, Narrow{});
  line.registers(operands);
}
void divide(Line& line) {
  line.take("approx");
  rounded<Op::div, Numbers, 3>(line);
}
void find_bit(Line& line) {
  const std::string type = line.type();
  line.i.kind = line.take("shiftamt") ? 0 : 1;
  line.i.run = pick<FindBit>(type, Types<Type<std::uint32_t, 'u'>, Type<std::uint64_t, 'u'>>{});
  line.registers(2);
}
void compare_operands(Line& line) {
  const std::string type = line.type();
  if (type == "f32" && line.take("ftz")) line.i.modifiers = ftz;
  line.i.kind = line.one_of(
      {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if ((line.i.kind > 5 && type[0] != 'f') || (line.i.kind > 1 && type[0] == 'b')) line.unknown();
  line.i.run = pick<Compare>(type, All{});
  line.registers(3);
}

}  // namespace

Run fused(Fused form, bool wide) {
  const auto chosen = [wide]<Op op> {
    return wide ? &Compute<op>::template run<double> : &Compute<op>::template run<float>;
  };
  switch (form) {
    case Fused::sum: return chosen.template operator()<Op::fma>();
    case Fused::product_first: return chosen.template operator()<Op::fma_minus>();
    case Fused::product_last: return chosen.template operator()<Op::minus_fma>();
  }
  return nullptr;
}

const Decoders& arithmetic_decoders() {
  using SignedOrFloats = decltype(Signed{} | Floats{});
  static const Decoders table{
      {"add", sum<Op::add>},
      {"sub", sum<Op::sub>},
      {"addc", sum_with_carry<0>},
      {"subc", sum_with_carry<1>},
      {"madc", sum_with_carry<2>},
      {"mul", product<Op::mul, Op::mul_high, 3>},
      {"mad", product<Op::mad, Op::mad_high, 4>},
      {"fma", rounded<Op::fma, Floats, 4>},
      {"div", divide},
      {"rem", plain<Compute<Op::rem>, Integers, 3>},
      {"min", rounded<Op::min, Numbers, 3>},
      {"max", rounded<Op::max, Numbers, 3>},
      {"neg", rounded<Op::neg, SignedOrFloats, 2>},
      {"abs", rounded<Op::abs, SignedOrFloats, 2>},
      {"copysign", plain<Compute<Op::copysign>, Floats, 3>},
      {"and", logic<Op::and_, 3>},
      {"or", logic<Op::or_, 3>},
      {"xor", logic<Op::xor_, 3>},
      {"not", logic<Op::not_, 2>},
      {"shl", plain<Shift<Op::shl>, Bits, 3>},
      {"shr", plain<Shift<Op::shr>, Integers, 3>},
      {"selp", plain<Select, All, 4>},
      {"setp", compare_operands},
      {"popc", plain<Compute<Op::popc>, Long, 2>},
      {"clz", plain<Compute<Op::clz>, Long, 2>},
      {"brev", plain<Compute<Op::brev>, Long, 2>},
      {"bfind", find_bit},
      {"bfi", plain<InsertBits, Long, 5>},
      {"prmt", plain<Compute<Op::prmt>, Types<Type<std::uint32_t, 'b'>>, 4>},
  };
  return table;
}

}  // namespace ptx
