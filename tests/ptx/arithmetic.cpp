// Sums, products, comparisons and bits.
#include <cfenv>
#include <cmath>
#include <limits>

#include "ptx/decode.hpp"
#include "ptx/float.hpp"

namespace ptx {

namespace {

using Wide = unsigned __int128;

/// d = Op(a, b, c). Floating point: subnormal inputs and results as .ftz says, a rounding of its
/// own, .sat, and the one NaN that the hardware makes.
template <class Op> struct Compute {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    T a = get<T>(t.r[i.a]), b = get<T>(t.r[i.b]), c = get<T>(t.r[i.c]);
    if constexpr (std::is_floating_point_v<T>) {
      // volatile: computed between the changes of the rounding
      volatile T x = flushed(a, i.modifiers), y = flushed(b, i.modifiers),
                 z = flushed(c, i.modifiers), result;
      {
        const Rounding rounding(i.modifiers);
        result = Op::template of<T>(x, y, z);
      }
      t.r[i.d] = put(finished<T>(result, i.modifiers));
    } else {
      t.r[i.d] = put(Op::template of<T>(a, b, c));
    }
    return Next::go_on;
  }
};

// Integers wrap around.
template <class T> T plus(T a, T b) { return static_cast<T>(Wide(a) + Wide(b)); }
template <class T> T times(T a, T b) { return static_cast<T>(Wide(a) * Wide(b)); }
template <class T> T high(T a, T b) {
  using Product = std::conditional_t<std::is_signed_v<T>, __int128, Wide>;
  return static_cast<T>((Product(a) * Product(b)) >> (8 * sizeof(T)));
}
template <class T> constexpr bool kFloat = std::is_floating_point_v<T>;

#define PTX_OP(name, ...)                                                \
  struct name {                                                          \
    template <class T> static T of([[maybe_unused]] T a, [[maybe_unused]] T b, \
                                   [[maybe_unused]] T c) {               \
      __VA_ARGS__                                                        \
    }                                                                    \
  };
PTX_OP(Add, if constexpr (kFloat<T>) return a + b; else return plus(a, b);)
PTX_OP(Sub, if constexpr (kFloat<T>) return a - b; else return static_cast<T>(Wide(a) - Wide(b));)
PTX_OP(Mul, if constexpr (kFloat<T>) return a * b; else return times(a, b);)
PTX_OP(Mad, return plus(times(a, b), c);)
PTX_OP(MulHigh, return high(a, b);)
PTX_OP(MadHigh, return plus(high(a, b), c);)
PTX_OP(Fma, return std::fma(a, b, c);)
// The quotient of 0 is not defined; all bits are set on the hardware.
PTX_OP(Div, if constexpr (kFloat<T>) return a / b; else {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(Wide(0) - Wide(a));
  return static_cast<T>(a / b);
})
PTX_OP(Rem, if (b == 0) return a; if constexpr (std::is_signed_v<T>) if (b == -1) return 0;
       return static_cast<T>(a % b);)
PTX_OP(Min, return least(a, b);)
PTX_OP(Max, return greatest(a, b);)
PTX_OP(Neg, if constexpr (kFloat<T>) return -a; else return static_cast<T>(Wide(0) - Wide(a));)
PTX_OP(Abs, if constexpr (kFloat<T>) return std::fabs(a);
       else return a < 0 ? static_cast<T>(Wide(0) - Wide(a)) : a;)
PTX_OP(And, return static_cast<T>(a & b);)
PTX_OP(Or, return static_cast<T>(a | b);)
PTX_OP(Xor, return static_cast<T>(a ^ b);)
PTX_OP(Not, return static_cast<T>(~a);)
PTX_OP(Brev, T r = 0; for (std::size_t k = 0; k < 8 * sizeof(T); ++k)
           r = static_cast<T>(r << 1 | (a >> k & 1)); return r;)
PTX_OP(Copysign, return std::copysign(b, a);)  // the sign of a
#undef PTX_OP

/// d = Op(a, b, c) without any change of the bits.
#define PTX_RUN(name, ...)                                                \
  struct name {                                                           \
    template <class T> static Next run(Thread& t, const Instruction& i) { \
      __VA_ARGS__                                                         \
      return Next::go_on;                                                 \
    }                                                                     \
  };
PTX_RUN(MulWide, using W = decltype(wider(T())); t.r[i.d] = put(
                     static_cast<W>(W(get<T>(t.r[i.a])) * W(get<T>(t.r[i.b]))));)
PTX_RUN(MadWide, using W = decltype(wider(T())); t.r[i.d] = put(
                     plus(static_cast<W>(W(get<T>(t.r[i.a])) * W(get<T>(t.r[i.b]))),
                          get<W>(t.r[i.c])));)
// Shifts by more than the width give zeros, or signs.
PTX_RUN(Shl, const auto by = get<std::uint32_t>(t.r[i.b]);
        t.r[i.d] = by >= 8 * sizeof(T) ? 0 : put(static_cast<T>(t.r[i.a] << by));)
PTX_RUN(Shr, const auto by = std::min<std::size_t>(get<std::uint32_t>(t.r[i.b]), 8 * sizeof(T));
        const T a = get<T>(t.r[i.a]);
        t.r[i.d] = put(by < 8 * sizeof(T) ? static_cast<T>(a >> by)
                                          : static_cast<T>(std::is_signed_v<T> && a < 0 ? -1 : 0));)
PTX_RUN(Select, t.r[i.d] = put(get<T>(t.r[t.r[i.c] != 0 ? i.a : i.b]));)
PTX_RUN(Popc, t.r[i.d] = static_cast<unsigned>(__builtin_popcountll(get<T>(t.r[i.a])));)
PTX_RUN(Clz, const T a = get<T>(t.r[i.a]); std::uint64_t n = 0;
        while (n < 8 * sizeof(T) && (a >> (8 * sizeof(T) - 1 - n) & 1) == 0) ++n; t.r[i.d] = n;)
/// Bits [start, start + length) of b are those of a.
PTX_RUN(Bfi, const T a = get<T>(t.r[i.a]), b = get<T>(t.r[i.b]);
        const auto start = t.r[i.c] & 255, length = t.r[i.e] & 255; T mask = 0;
        for (auto k = start; k < start + length && k < 8 * sizeof(T); ++k)
          mask = static_cast<T>(mask | T(1) << k);
        const T moved = start < 8 * sizeof(T) ? static_cast<T>(a << start) : T(0);
        t.r[i.d] = put(static_cast<T>((b & ~mask) | (moved & mask)));)
/// Bits [start, start + length) of a; above them the sign, which is the field's highest bit.
PTX_RUN(Bfe, constexpr std::uint64_t width = 8 * sizeof(T); const T a = get<T>(t.r[i.a]);
        const auto start = t.r[i.b] & 255, length = t.r[i.c] & 255;
        const bool negative = std::is_signed_v<T> && length > 0 &&
                              (a >> std::min(start + length - 1, width - 1) & 1) != 0;
        std::uint64_t r = 0; for (std::uint64_t k = 0; k < width; ++k) {
          const bool in = k < length && start + k < width;
          r |= std::uint64_t(in ? (a >> (start + k) & 1) != 0 : negative) << k;
        } t.r[i.d] = put(static_cast<T>(r));)
/// Four bytes of the eight of b:a; bit 3 of a choice: its sign, eight times.
PTX_RUN(Prmt, const T bytes = t.r[i.b] << 32 | (t.r[i.a] & 0xffffffff); std::uint64_t r = 0;
        for (unsigned k = 0; k < 4; ++k) {
          const auto choice = t.r[i.c] >> (4 * k) & 15;
          std::uint64_t byte = bytes >> (8 * (choice & 7)) & 255;
          if ((choice & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
          r |= byte << (8 * k);
        } t.r[i.d] = r;)
/// b:a shifted; kind: left, right. .wrap: by c modulo 32.
PTX_RUN(Funnel, const T both = t.r[i.b] << 32 | (t.r[i.a] & 0xffffffff), by = t.r[i.c] & 31;
        t.r[i.d] = (i.kind == 0 ? both << by >> 32 : both >> by) & 0xffffffff;)
PTX_RUN(NotPredicate, t.r[i.d] = T(t.r[i.a] == 0);)
/// Sums and products longer than a register. kind: add, sub, mad.lo, mad.hi; with the carry flag as
/// an input where offset is not 0, and as an output with .cc.
PTX_RUN(Carry, const T a = get<T>(t.r[i.a]), b = get<T>(t.r[i.b]), c = get<T>(t.r[i.c]);
        const Wide in = i.offset != 0 && t.carry ? 1 : 0;
        const Wide x = i.kind == 0   ? Wide(a) + b + in
                       : i.kind == 1 ? Wide(a) - b - in
                                     : Wide(i.kind == 2 ? times(a, b) : high(a, b)) + c + in;
        if ((i.modifiers & cc) != 0) t.carry = (x >> (8 * sizeof(T)) & 1) != 0;
        t.r[i.d] = put(static_cast<T>(x));)
/// Ordered comparisons are false for NaN, those with u true.
PTX_RUN(Compare, bool yes = compare(i.kind, flushed(get<T>(t.r[i.a]), i.modifiers),
                                    flushed(get<T>(t.r[i.b]), i.modifiers));
        bool no = !yes; if (i.target > 0) {  // and, or, xor with a predicate
          const bool p = (t.r[i.c] != 0) != (i.offset != 0);
          yes = i.target == 1 ? yes && p : i.target == 2 ? yes || p : yes != p;
          no = i.target == 1 ? no && p : i.target == 2 ? no || p : no != p;
        } if (i.d >= 0) t.r[i.d] = yes; if (i.e >= 0) t.r[i.e] = no;)
#undef PTX_RUN

// ---- decoding
constexpr Types<Type<std::uint16_t, 'u'>, Type<std::int16_t, 's'>, Type<std::uint32_t, 'u'>,
                Type<std::int32_t, 's'>>
    narrow;
constexpr Types<Type<std::uint32_t, 'u'>, Type<std::uint32_t, 's'>, Type<std::uint64_t, 'u'>,
                Type<std::uint64_t, 's'>>
    unsigned_of_both;
constexpr Types<Type<std::uint32_t, 'b'>, Type<std::uint64_t, 'b'>> bits32;

template <class Op, class List, std::size_t operands> void plain(Line& line) {
  line.i.run = pick<Compute<Op>>(line.type(), List{});
  line.registers(operands);
}
/// Floating point with its modifiers, or integers.
template <class Op, class List, std::size_t operands> void rounded(Line& line) {
  const std::string type = line.type();
  if (type[0] == 'f') line.rounding();
  line.i.run = pick<Compute<Op>>(type, List{});
  line.registers(operands);
}
template <class Op> void logic(Line& line) {
  const std::string type = line.type();
  line.i.run = pick<Compute<Op>>(type == "pred" ? "b64" : type, Bits{});
  line.registers(3);
}
void negate_bits(Line& line) {
  const std::string type = line.type();
  line.i.run = type == "pred" ? &NotPredicate::run<std::uint64_t> : pick<Compute<Not>>(type, Bits{});
  line.registers(2);
}
template <class Op, class List, std::size_t operands> void bits(Line& line) {
  line.i.run = pick<Op>(line.type(), List{});
  line.registers(operands);
}

bool carries(Line& line, int kind, bool in) {
  const bool out = line.take("cc");
  if (!out && !in) return false;
  if (kind == 2) kind += line.one_of({"lo", "hi"});
  line.i.kind = kind, line.i.offset = in, line.i.modifiers = out ? cc : 0u;
  line.i.run = pick<Carry>(line.type(), unsigned_of_both);
  line.registers(kind < 2 ? 3 : 4);
  return true;
}
template <class Op, int kind> void sum(Line& line) {
  if (!carries(line, kind, false)) rounded<Op, Numbers, 3>(line);
}
template <int kind> void sum_with_carry(Line& line) { carries(line, kind, true); }
template <class Low, class High, class WideOp, std::size_t operands> void product(Line& line) {
  if (operands == 4 && carries(line, 2, false)) return;
  const std::string type = line.type();
  if (type[0] == 'f') {
    if (operands == 4) line.unknown();  // mad.f32 is fma
    line.rounding();
    line.i.run = pick<Compute<Low>>(type, Numbers{});
  } else {
    const int which = line.one_of({"lo", "hi", "wide"});
    line.i.run = which == 0   ? pick<Compute<Low>>(type, Integers{})
                 : which == 1 ? pick<Compute<High>>(type, Integers{})
                              : pick<WideOp>(type, narrow);
  }
  line.registers(operands);
}
void divide(Line& line) {
  line.take("approx"), line.take("full");
  rounded<Div, Numbers, 3>(line);
}
void compare_operands(Line& line) {
  const std::string type = line.type();
  if (type == "f32" && line.take("ftz")) line.i.modifiers = ftz;
  line.i.kind = line.one_of({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu",
                             "geu", "num", "nan", "lo", "ls", "hi", "hs"});
  const bool of_floats = line.i.kind >= 6 && line.i.kind < 14;
  if (of_floats && type[0] != 'f') line.unknown();
  if (line.i.kind >= 14) {  // lower, lower or same, …: of unsigned numbers
    if (type[0] != 'u') line.unknown();
    line.i.kind -= 12;
  }
  if (type[0] == 'b' && line.i.kind > 1) line.unknown();
  line.i.target = line.take("and") ? 1 : line.take("or") ? 2 : line.take("xor") ? 3 : 0;
  line.i.run = pick<Compare>(type, All{});
  line.count(line.i.target > 0 ? 4 : 3, line.i.target > 0 ? 4 : 3);
  line.i.e = line.second(line.operands[0]);
  line.i.d = line.value(0), line.i.a = line.value(1), line.i.b = line.value(2);
  if (line.i.target > 0) {
    std::string& p = line.operands[3];
    line.i.offset = p.front() == '!';
    if (line.i.offset != 0) p = p.substr(1);
    line.i.c = line.value(3);
  }
}
void funnel(Line& line) {
  line.i.kind = line.one_of({"l", "r"});
  line.expect("wrap"), line.expect("b32");
  line.i.run = &Funnel::run<std::uint64_t>;
  line.registers(4);
}
void permute(Line& line) {
  line.expect("b32");
  line.i.run = &Prmt::run<std::uint64_t>;
  line.registers(4);
}

}  // namespace

const Decoders& arithmetic_decoders() {
  static const Decoders table{
      {"add", sum<Add, 0>},
      {"sub", sum<Sub, 1>},
      {"addc", sum_with_carry<0>},
      {"subc", sum_with_carry<1>},
      {"madc", sum_with_carry<2>},
      {"mul", product<Mul, MulHigh, MulWide, 3>},
      {"mad", product<Mad, MadHigh, MadWide, 4>},
      {"fma", rounded<Fma, Floats, 4>},
      {"div", divide},
      {"rem", plain<Rem, Integers, 3>},
      {"min", rounded<Min, Numbers, 3>},
      {"max", rounded<Max, Numbers, 3>},
      {"neg", rounded<Neg, decltype(Signed{} | Floats{}), 2>},
      {"abs", rounded<Abs, decltype(Signed{} | Floats{}), 2>},
      {"copysign", plain<Copysign, Floats, 3>},
      {"and", logic<And>},
      {"or", logic<Or>},
      {"xor", logic<Xor>},
      {"not", negate_bits},
      {"shl", bits<Shl, Bits, 3>},
      {"shr", bits<Shr, decltype(Integers{} | Bits{}), 3>},
      {"selp", bits<Select, All, 4>},
      {"setp", compare_operands},
      {"popc", bits<Popc, decltype(bits32), 2>},
      {"clz", bits<Clz, decltype(bits32), 2>},
      {"brev", plain<Brev, decltype(bits32), 2>},
      {"bfi", bits<Bfi, decltype(bits32), 5>},
      {"bfe", bits<Bfe, decltype(Integers{}), 4>},
      {"prmt", permute},
      {"shf", funnel},
  };
  return table;
}

}  // namespace ptx
