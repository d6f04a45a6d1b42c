// Conversions, moves, and the functions of the special function unit. Its .approx operations are
// correctly rounded here; the hardware is within two units in the last place.
#include <algorithm>

#include "ptx/decode.hpp"
#include "ptx/float.hpp"
#include "ptx/module.hpp"

namespace ptx {

namespace {

/// Converts to an integer. Values outside the range become its nearest end.
template <class D, class S> D to_integer(S x) {
  // the manual: NaN becomes 0, or the sign bit alone if one of the types has 64 bits
  if (x != x)
    return sizeof(D) == 8 || sizeof(S) == 8
               ? static_cast<D>(std::uint64_t(1) << (8 * sizeof(D) - 1))
               : D(0);
  const long double wide = x;
  if (wide <= static_cast<long double>(std::numeric_limits<D>::min()))
    return std::numeric_limits<D>::min();
  if (wide >= static_cast<long double>(std::numeric_limits<D>::max()))
    return std::numeric_limits<D>::max();
  return static_cast<D>(x);
}
template <class T> T integral(T x, unsigned m) {
  if ((m & rni) != 0) return std::nearbyint(x);
  if ((m & rzi) != 0) return std::trunc(x);
  if ((m & rmi) != 0) return std::floor(x);
  return (m & rpi) != 0 ? std::ceil(x) : x;
}

template <class S> struct Convert {
  template <class D> static Next run(Thread& t, const Instruction& i) {
    const S a = get<S>(t.r[i.a]);
    if constexpr (!std::is_floating_point_v<S> && !std::is_floating_point_v<D>) {
      D d = static_cast<D>(a);
      if ((i.modifiers & sat) != 0) {
        const __int128 wide = a;
        d = wide < std::numeric_limits<D>::min()   ? std::numeric_limits<D>::min()
            : wide > std::numeric_limits<D>::max() ? std::numeric_limits<D>::max()
                                                   : d;
      }
      t.r[i.d] = put(d);
    } else if constexpr (!std::is_floating_point_v<D>) {
      t.r[i.d] = put(to_integer<D>(integral(flushed(a, i.modifiers), i.modifiers)));
    } else {
      S from = a;
      if constexpr (std::is_floating_point_v<S>)
        from = integral(flushed(a, i.modifiers), i.modifiers);
      t.r[i.d] = put(finished(static_cast<D>(from), i.modifiers));
    }
    return Next::go_on;
  }
};

/// Rounds to the nearest 16-bit floating-point number, ties to even.
std::uint16_t to_half(double x, int fraction, int lowest, int bias) {
  if (x != x) return 0x7fff;
  const int sign = std::signbit(x) ? 0x8000 : 0;
  x = std::fabs(x);
  const int infinity = ((1 << (15 - fraction)) - 1) << fraction;
  if (std::isinf(x)) return static_cast<std::uint16_t>(sign | infinity);
  int exponent = x == 0 ? lowest : std::max(std::ilogb(x), lowest);
  const double steps = std::nearbyint(std::ldexp(x, fraction - exponent));
  // steps of the exponent's interval; subnormals have no leading bit, and a carry raises the
  // exponent
  const int bits = static_cast<int>(steps) + ((exponent + bias - 1) << fraction);
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

template <class S> Next to_f16(Thread& t, const Instruction& i) {
  t.r[i.d] = to_half(get<S>(t.r[i.a]), 10, -14, 15);
  return Next::go_on;
}
Next to_bf16(Thread& t, const Instruction& i) {
  t.r[i.d] = to_half(get<float>(t.r[i.a]), 7, -126, 127);
  return Next::go_on;
}
/// Rounds to the nearest number of TF32, ties away from zero: 13 bits of float32 fewer.
Next to_tf32(Thread& t, const Instruction& i) {
  const auto x = get<float>(t.r[i.a]);
  const auto bits = get<std::uint32_t>(t.r[i.a]);
  t.r[i.d] = x != x ? 0x7fffe000u : std::isinf(x) ? bits : (bits + 0x1000u) & 0xffffe000u;
  return Next::go_on;
}
template <class D> Next from_f16(Thread& t, const Instruction& i) {
  t.r[i.d] = put(one_nan(static_cast<D>(from_half(get<std::uint16_t>(t.r[i.a])))));
  return Next::go_on;
}
Next from_bf16(Thread& t, const Instruction& i) {
  t.r[i.d] = std::uint64_t(get<std::uint16_t>(t.r[i.a])) << 16;
  return Next::go_on;
}

/// Two numbers in one register: a in the upper half, b in the lower.
Next to_f16_pair(Thread& t, const Instruction& i) {
  t.r[i.d] = std::uint64_t(to_half(get<float>(t.r[i.a]), 10, -14, 15)) << 16 |
             to_half(get<float>(t.r[i.b]), 10, -14, 15);
  return Next::go_on;
}
Next to_bf16_pair(Thread& t, const Instruction& i) {
  t.r[i.d] = std::uint64_t(to_half(get<float>(t.r[i.a]), 7, -126, 127)) << 16 |
             to_half(get<float>(t.r[i.b]), 7, -126, 127);
  return Next::go_on;
}

struct Move {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    t.r[i.d] = put(get<T>(t.r[i.a]));
    return Next::go_on;
  }
};
/// kind: bits of an element.
std::uint64_t mask(const Instruction& i) { return (std::uint64_t(1) << i.kind) - 1; }
Next pack(Thread& t, const Instruction& i) {
  std::uint64_t whole = 0;
  for (int k = 0; k < i.lanes; ++k)
    whole |= (t.r[i.lane[static_cast<std::size_t>(k)]] & mask(i)) << (k * i.kind);
  t.r[i.d] = whole;
  return Next::go_on;
}
Next unpack(Thread& t, const Instruction& i) {
  const std::uint64_t whole = t.r[i.a];
  for (int k = 0; k < i.lanes; ++k)
    if (const int to = i.lane[static_cast<std::size_t>(k)]; to >= 0)
      t.r[to] = whole >> (k * i.kind) & mask(i);
  return Next::go_on;
}

/// d = f(a), computed in double, and rounded to float32 for that type.
template <double (*f)(double)> struct Function {
  template <class T> static Next run(Thread& t, const Instruction& i) {
    const T x = flushed(get<T>(t.r[i.a]), i.modifiers);
    t.r[i.d] = put(finished(static_cast<T>(f(x)), i.modifiers));
    return Next::go_on;
  }
};
double reciprocal(double x) { return 1 / x; }
double reciprocal_root(double x) { return 1 / std::sqrt(x); }
/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: the upper half of the result; the lower half is
/// zero.
template <double (*f)(double)> Next upper_half(Thread& t, const Instruction& i) {
  const auto flush = [](double x) {
    return std::fabs(x) < std::numeric_limits<double>::min() ? std::copysign(0.0, x) : x;
  };
  const double result = flush(f(flush(get<double>(t.r[i.a]))));
  t.r[i.d] = put(one_nan(result)) & 0xffffffff00000000;
  return Next::go_on;
}

// ---- decoding
template <class S> Run convert_from(const std::string& to) {
  return pick<Convert<S>>(to, Types<Type<std::uint8_t, 'u'>, Type<std::int8_t, 's'>>{} | Numbers{});
}
void convert(Line& line) {
  const std::string from = line.type(), to = line.type();
  if (to == "f16x2" || to == "bf16x2") {
    line.registers(3);
    line.expect("rn");
    line.i.run = from != "f32" ? nullptr : to == "f16x2" ? &to_f16_pair : &to_bf16_pair;
    return;
  }
  line.registers(2);
  if (to == "tf32") {
    line.expect("rna");
    line.i.run = from == "f32" ? &to_tf32 : nullptr;
    return;
  }
  const bool halves = from == "f16" || from == "bf16" || to == "f16" || to == "bf16";
  if (halves) {
    if (to == "f16" || to == "bf16") line.expect("rn");
    line.i.run = from == "f32" && to == "f16"    ? &to_f16<float>
                 : from == "f64" && to == "f16"  ? &to_f16<double>
                 : from == "f32" && to == "bf16" ? &to_bf16
                 : from == "f16" && to == "f32"  ? &from_f16<float>
                 : from == "f16" && to == "f64"  ? &from_f16<double>
                 : from == "bf16" && to == "f32" ? &from_bf16
                                                 : nullptr;
    return;
  }
  const bool to_float = to[0] == 'f', from_float = from[0] == 'f';
  // A rounding modifier is allowed only where the manual requires one.
  if (from_float && (!to_float || to == from)) {
    const std::size_t before = line.parts.size();
    for (const auto& [name, modifier] :
         {std::pair{"rni", rni}, {"rzi", rzi}, {"rmi", rmi}, {"rpi", rpi}})
      if (line.take(name)) line.i.modifiers |= modifier;
    if (!to_float && line.parts.size() + 1 != before) line.unknown();
  } else if (to_float && (!from_float || to == "f32")) {
    if (line.one_of({"rn", "rz", "rm", "rp"}) > 0) line.unknown();  // no kernel uses another one
  }
  if ((from == "f32" || to == "f32") && line.take("ftz")) line.i.modifiers |= ftz;
  if (line.take("sat")) line.i.modifiers |= sat;
  if (!to_float && from_float && (line.i.modifiers & sat) != 0) line.unknown();
  line.i.run = from == "u8"    ? convert_from<std::uint8_t>(to)
               : from == "s8"  ? convert_from<std::int8_t>(to)
               : from == "u16" ? convert_from<std::uint16_t>(to)
               : from == "s16" ? convert_from<std::int16_t>(to)
               : from == "u32" ? convert_from<std::uint32_t>(to)
               : from == "s32" ? convert_from<std::int32_t>(to)
               : from == "u64" ? convert_from<std::uint64_t>(to)
               : from == "s64" ? convert_from<std::int64_t>(to)
               : from == "f32" ? convert_from<float>(to)
               : from == "f64" ? convert_from<double>(to)
                               : nullptr;
}

void move(Line& line) {
  const std::string type = line.type();
  line.count(2, 2);
  if (line.vector(0)) {
    line.i.run = &unpack, line.i.a = line.value(1);
  } else if (line.vector(1)) {
    line.i.run = &pack, line.i.d = line.value(0);
  } else {
    line.i.run = type == "pred" ? &Move::run<std::uint64_t> : pick<Move>(type, All{});
    line.registers(2);
    return;
  }
  if (type[0] != 'b' || line.i.lanes < 2) line.unknown();
  line.i.kind = static_cast<int>(8 * bytes_of(type)) / line.i.lanes;
}

/// .approx for float32, or with a rounding for both types.
template <double (*f)(double), bool exact> void function(Line& line) {
  const std::string type = line.type();
  const bool approx = line.take("approx");
  if (!approx && !exact) line.unknown();
  line.registers(2);
  if (type == "f64" && approx) {
    if (f != reciprocal && f != reciprocal_root) line.unknown();
    // without .ftz (rsqrt): subnormals are flushed nevertheless
    if (f == reciprocal) line.expect("ftz");
    line.take("ftz");
    line.i.run = &upper_half<f>;
    return;
  }
  if (!approx && line.one_of({"rn", "rz", "rm", "rp"}) > 0) line.unknown();
  if (type == "f32" && line.take("ftz")) line.i.modifiers |= ftz;
  line.i.run = pick<Function<f>>(type, Floats{});
}

}  // namespace

const Decoders& conversion_decoders() {
  static const Decoders table{
      {"cvt", convert},
      {"mov", move},
      {"rcp", function<reciprocal, true>},
      {"sqrt", function<std::sqrt, true>},
      {"rsqrt", function<reciprocal_root, false>},
      {"ex2", function<std::exp2, false>},
  };
  return table;
}

}  // namespace ptx
