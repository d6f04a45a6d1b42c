#pragma once
// Rounding to nearest even in any binary format, by its definition, and the distance between
// neighbouring numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace reference {

/// A binary floating-point format: the bits of the significand (including the hidden bit) and the
/// exponents of the smallest and largest normal number (1 <= |m| < 2).
struct Format {
  int precision, min_exponent, max_exponent;
};
inline constexpr Format kFloat16{11, -14, 15}, kBfloat16{8, -126, 127}, kFloat32{24, -126, 127},
    kFloat64{53, -1022, 1023};

/// Returns the distance between neighbouring numbers at |x|.
inline double ulp(double x, const Format& f) {
  int exponent = f.min_exponent;
  if (x != 0 && std::isfinite(x)) exponent = std::max(std::ilogb(x), f.min_exponent);
  return std::ldexp(1.0, exponent - f.precision + 1);
}

inline double round_to(double x, const Format& f) {
  if (!std::isfinite(x) || f.precision == 53) return x;
  const double step = ulp(x, f);
  const double scaled = x / step;  // exact: step is a power of two
  double r = std::floor(scaled);
  const double rest = scaled - r;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(r, 2.0) != 0)) r += 1;
  r *= step;
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, 1 - f.precision), f.max_exponent);
  if (std::fabs(r) > largest) return std::copysign(std::numeric_limits<double>::infinity(), x);
  return std::copysign(r, x);
}

/// Decodes a 16-bit pattern: 1 sign bit, then the exponent, then precision - 1 bits.
inline double decode16(std::uint16_t bits, const Format& f) {
  const int mantissa_bits = f.precision - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int top = 0x7fff >> mantissa_bits;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == top)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, f.min_exponent - mantissa_bits);
  return sign *
         std::ldexp(mantissa + (1 << mantissa_bits), f.min_exponent + exponent - 1 - mantissa_bits);
}

/// Encodes a number that the format represents exactly (or NaN).
inline std::uint16_t encode16(double x, const Format& f) {
  const int mantissa_bits = f.precision - 1;
  const int top = 0x7fff >> mantissa_bits;
  const int sign = std::signbit(x) ? 0x8000 : 0;
  const double m = std::fabs(x);
  if (std::isnan(x))
    return static_cast<std::uint16_t>(sign | (top << mantissa_bits) | (1 << (mantissa_bits - 1)));
  if (std::isinf(x)) return static_cast<std::uint16_t>(sign | (top << mantissa_bits));
  const double step = ulp(m, f);
  const int units = static_cast<int>(m / step);
  if (units < (1 << mantissa_bits)) return static_cast<std::uint16_t>(sign | units);
  const int exponent = std::ilogb(m) - f.min_exponent + 1;
  return static_cast<std::uint16_t>(sign | (exponent << mantissa_bits) |
                                    (units - (1 << mantissa_bits)));
}

}  // namespace reference
