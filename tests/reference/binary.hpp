#pragma once
// Division with its remainder, integer powers, and bits of integers.
#include <cmath>
#include <cstdint>

namespace reference {

/// Returns ⌊a / b⌋ of the exact quotient.
inline double floor_divide(double a, double b) {
  if (b == 0) return a / b;
  const double r = std::fmod(a, b), whole = std::round((a - r) / b);
  const double below = r != 0 && (r < 0) != (b < 0) ? whole - 1 : whole;
  return below == 0 ? std::copysign(0.0, a / b) : below;
}
/// Returns a modulo b, with the sign of b.
inline double remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/// Integer power. A negative exponent gives 0 unless the base is 1 or -1.
inline double whole_power(double a, double b) {
  const double y = std::pow(a, b);
  return b < 0 && std::fabs(a) != 1 ? 0 : y;
}

inline std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }
inline double bitwise_and(double a, double b) { return static_cast<double>(whole(a) & whole(b)); }
inline double bitwise_or(double a, double b) { return static_cast<double>(whole(a) | whole(b)); }
inline double bitwise_xor(double a, double b) { return static_cast<double>(whole(a) ^ whole(b)); }
/// Returns the lowest `bits` bits of a 2^b; 0 for b outside [0, bits).
inline double shifted_left(double a, double b, int bits, bool is_signed) {
  if (b < 0 || b >= bits) return 0;
  std::uint64_t y = static_cast<std::uint64_t>(whole(a)) << whole(b);
  if (bits < 64) y &= (std::uint64_t{1} << bits) - 1;
  if (!is_signed) return static_cast<double>(y);
  if (bits < 64 && (y >> (bits - 1)) != 0) y -= std::uint64_t{1} << bits;
  return static_cast<double>(static_cast<std::int64_t>(y));
}
/// Returns ⌊a / 2^b⌋; for b outside [0, bits), 0 or -1, as the sign of a is.
inline double shifted_right(double a, double b, int bits) {
  if (b < 0 || b >= bits) return a < 0 ? -1 : 0;
  return std::floor(std::ldexp(a, -static_cast<int>(b)));
}

}  // namespace reference
