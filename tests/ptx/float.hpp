#pragma once
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ptx/decode.hpp"

// Floating-point rules of the manual.
namespace ptx {

/// .ftz: subnormal numbers of float32 become zeros of the same sign.
template <class T> T flushed(T x, unsigned modifiers) {
  if constexpr (std::is_same_v<T, float>)
    if ((modifiers & ftz) != 0 && std::fabs(x) < std::numeric_limits<float>::min())
      return std::copysign(0.0f, x);
  return x;
}
/// Gives a computed NaN these bits.
template <class T> T one_nan(T x) {
  if (x == x) return x;
  if constexpr (std::is_same_v<T, float>) return get<float>(0x7fffffff);
  return static_cast<T>(get<double>(0xfff8000000000000));
}
/// .sat: clamps to [0, 1]; NaN becomes 0.
template <class T> T finished(T x, unsigned modifiers) {
  x = flushed(x, modifiers);
  if ((modifiers & sat) != 0) x = !(x > 0) ? T(0) : x > 1 ? T(1) : x;
  return one_nan(x);
}
/// Computes f(a, b, c) with the rounding of one instruction.
template <class T, class A, class F> T with_rounding(unsigned modifiers, A a, A b, A c, F f) {
  if ((modifiers & (rz | rm | rp)) == 0) return f(a, b, c);
  // volatile: the computation must stay between the two changes of the rounding mode
  volatile A x = a, y = b, z = c;
  std::fesetround((modifiers & rz) != 0   ? FE_TOWARDZERO
                  : (modifiers & rm) != 0 ? FE_DOWNWARD
                                          : FE_UPWARD);
  volatile T result = f(x, y, z);
  std::fesetround(FE_TONEAREST);
  return result;
}

/// Returns the other number if one is NaN. -0 is less than +0.
template <class T> T least(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a != a ? b : a;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}
template <class T> T greatest(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a != a ? b : a;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

template <class T> bool compare(int kind, T a, T b) {
  if (a != a || b != b) return kind == 13 || (kind >= 6 && kind < 12);
  switch (kind % 6) {
    case 0: return kind == 12 || a == b;  // num
    case 1: return kind != 13 && a != b;  // nan
    case 2: return a < b;
    case 3: return a <= b;
    case 4: return a > b;
    default: return a >= b;
  }
}

inline double from_half(std::uint16_t x) {
  const int exponent = x >> 10 & 31, fraction = x & 1023;
  double value = exponent == 0    ? std::ldexp(fraction, -24)
                 : exponent == 31 ? (fraction == 0 ? HUGE_VAL : NAN)
                                  : std::ldexp(1024 + fraction, exponent - 25);
  return (x & 0x8000) != 0 ? -value : value;
}
inline float from_bfloat16(std::uint16_t x) { return get<float>(std::uint64_t(x) << 16); }

inline std::int64_t wider(std::int32_t) { return 0; }
inline std::uint64_t wider(std::uint32_t) { return 0; }
inline std::int32_t wider(std::int16_t) { return 0; }
inline std::uint32_t wider(std::uint16_t) { return 0; }

}  // namespace ptx
