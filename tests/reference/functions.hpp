#pragma once
// Division with its remainder, and integer powers.
#include <cmath>

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

}  // namespace reference
