#pragma once
#include "cpu/simd/math.hpp"

// Elementary functions in double for results that are rounded to float. The relative error is under
// 2^-32 for every float argument, so at most 1 ULP after rounding. Where a difference cancels near
// 0, a short series is used. Polynomials interpolate at Chebyshev nodes.
namespace braid::cpu::BRAID_ISA {
namespace {

BRAID_INLINE VD magnitude_of(VD x) { return (VD)((VL)x & INT64_MAX); }
BRAID_INLINE VF magnitude_of(VF x) { return (VF)((VI)x & INT32_MAX); }
/// Returns m, whose sign bit is 0, with the sign of x.
BRAID_INLINE VD with_sign_of(VD x, VD m) { return (VD)((VL)m | ((VL)x & INT64_MIN)); }
BRAID_INLINE VF with_sign_of(VF x, VF m) { return (VF)((VI)m | ((VI)x & INT32_MIN)); }

/// Computes f in double on lanes of floats.
template <class F> BRAID_INLINE VF in_double(VF x, F f) {
  const DoublePair wide = to_double(x);
  return to_float(f(wide.low), f(wide.high));
}
template <class F> BRAID_INLINE VF in_double(VF a, VF b, F f) {
  const DoublePair x = to_double(a), y = to_double(b);
  return to_float(f(x.low, y.low), f(x.high, y.high));
}

/// Rounds to integers, ties to even: adding 2^23 (2^52 for double) leaves no bits for a fraction.
BRAID_INLINE VF round_even(VF x) {
  const VF m = magnitude_of(x);
  return m < 0x1p23f ? with_sign_of(x, (m + 0x1p23f) - 0x1p23f) : x;
}
BRAID_INLINE VD round_even(VD x) {
  const VD m = magnitude_of(x);
  return m < 0x1p52 ? with_sign_of(x, (m + 0x1p52) - 0x1p52) : x;
}

namespace wide {

BRAID_INLINE VD expm1(VD x) {
  return magnitude_of(x) < 0x1p-12 ? x * (x * (x * (1.0 / 6) + 0.5) + 1.0) : exp(x) - 1.0;
}
BRAID_INLINE VD log1p(VD x) {
  return magnitude_of(x) < 0x1p-12 ? x * (1.0 - x * (0.5 - x * (1.0 / 3))) : log(x + 1.0);
}

BRAID_INLINE VD sinh(VD x) {
  VD m = magnitude_of(x);
  m = m > 100.0 ? splat<VD>(100.0) : m;  // far beyond float
  const VD z = m * m, e = exp(m);
  return with_sign_of(
      x, m < 0x1p-6 ? m * (z * (z * (1.0 / 120) + 1.0 / 6) + 1.0) : (e - 1.0 / e) * 0.5);
}
BRAID_INLINE VD cosh(VD x) {
  VD m = magnitude_of(x);
  m = m > 100.0 ? splat<VD>(100.0) : m;
  const VD e = exp(m);
  return (e + 1.0 / e) * 0.5;
}
BRAID_INLINE VD asinh(VD x) {
  const VD m = magnitude_of(x), z = m * m;
  return with_sign_of(
      x, m < 0x1p-6 ? m * (z * (z * (3.0 / 40) - 1.0 / 6) + 1.0) : log(m + sqrt(z + 1.0)));
}
BRAID_INLINE VD acosh(VD x) {
  return x < 1.0 ? splat<VD>(__builtin_nan("")) : log(x + sqrt((x - 1.0) * (x + 1.0)));
}
BRAID_INLINE VD atanh(VD x) {
  const VD m = magnitude_of(x), z = m * m;
  return with_sign_of(
      x, m < 0x1p-6 ? m * (z * (z * (1.0 / 5) + 1.0 / 3) + 1.0) : log((1.0 + m) / (1.0 - m)) * 0.5);
}

/// Reduces three ranges to |r| <= tan(π/8): r is m, (m - 1) / (m + 1) or -1 / m.
BRAID_INLINE VD atan(VD x) {
  const VD m = magnitude_of(x);
  const auto low = m <= 0x1.a827999fcef32p-2, high = m > 0x1.3504f333f9de6p1;
  const VD r = (low ? m : (high ? splat<VD>(-1.0) : m - 1.0)) /
               (low ? splat<VD>(1.0) : (high ? m : m + 1.0));
  const VD z = r * r;
  VD p = mul_add(splat<VD>(0x1.f657ae7e09908p-6), z, splat<VD>(-0x1.e13ac280a9accp-5));
  p = mul_add(p, z, splat<VD>(0x1.35ced8de982a2p-4));
  p = mul_add(p, z, splat<VD>(-0x1.73d9cba10d56bp-4));
  p = mul_add(p, z, splat<VD>(0x1.c714d3e720df5p-4));
  p = mul_add(p, z, splat<VD>(-0x1.2492291945813p-3));
  p = mul_add(p, z, splat<VD>(0x1.99999911c1573p-3));
  p = mul_add(p, z, splat<VD>(-0x1.55555554e5fc5p-2));
  p = mul_add(p, z, splat<VD>(0x1.fffffffffff0fp-1));
  const VD base =
      low ? VD{} : (high ? splat<VD>(0x1.921fb54442d18p0) : splat<VD>(0x1.921fb54442d18p-1));
  return with_sign_of(x, base + r * p);
}
BRAID_INLINE VD asin(VD x) { return atan(x / sqrt((1.0 - x) * (1.0 + x))); }
BRAID_INLINE VD acos(VD x) { return atan(sqrt((1.0 - x) / (1.0 + x))) * 2.0; }
BRAID_INLINE VD atan2(VD y, VD x) {
  const VD a = magnitude_of(y), b = magnitude_of(x);
  const VD ratio =
      // ∞ / ∞ and 0 / 0 have a defined angle; a NaN is not equal to anything
      ((a == b) & (a - a != 0.0)) ? splat<VD>(1.0) : (((a == 0.0) & (b == 0.0)) ? VD{} : a / b);
  const VD angle = atan(ratio);
  return with_sign_of(y, (VL)x < 0 ? 0x1.921fb54442d18p1 - angle : angle);
}

/// erfc(m) for m >= 0: e^-m² times a polynomial in (m - 2.5) / (m + 2.5). For m > 12 the result is
/// less than any positive float.
BRAID_INLINE VD erfc_of_magnitude(VD m) {
  m = m > 28.0 ? splat<VD>(28.0) : m;
  const VD t = (m - 2.5) / (m + 2.5);
  VD p = mul_add(splat<VD>(0x1.94fceb72572dap-18), t, splat<VD>(0x1.0168883557f01p-16));
  p = mul_add(p, t, splat<VD>(-0x1.1c06862328330p-15));
  p = mul_add(p, t, splat<VD>(-0x1.0a3a806c5e46bp-13));
  p = mul_add(p, t, splat<VD>(0x1.df13f5775b3e5p-13));
  p = mul_add(p, t, splat<VD>(0x1.caed13c3ec488p-11));
  p = mul_add(p, t, splat<VD>(-0x1.5a57ee26d2991p-9));
  p = mul_add(p, t, splat<VD>(-0x1.05b9a69b41e44p-8));
  p = mul_add(p, t, splat<VD>(0x1.470ba26ec1c1ap-5));
  p = mul_add(p, t, splat<VD>(-0x1.001155169d4c4p-3));
  p = mul_add(p, t, splat<VD>(0x1.01c11a7631b44p-2));
  p = mul_add(p, t, splat<VD>(-0x1.7ca88de9cd21ep-2));
  p = mul_add(p, t, splat<VD>(0x1.afbb3f3b54aebp-3));
  return exp(-(m * m)) * p;
}
BRAID_INLINE VD erfc(VD x) {
  const VD y = erfc_of_magnitude(magnitude_of(x));
  return x < 0.0 ? 2.0 - y : y;
}
BRAID_INLINE VD erf(VD x) {
  const VD m = magnitude_of(x), z = m * m;
  VD p = mul_add(splat<VD>(-0x1.c1a515de8637ap-24), z, splat<VD>(0x1.9ae0986f9de4fp-20));
  p = mul_add(p, z, splat<VD>(-0x1.f0705a1dde9aap-17));
  p = mul_add(p, z, splat<VD>(0x1.f941bed7e7847p-14));
  p = mul_add(p, z, splat<VD>(-0x1.c0286cad68e02p-11));
  p = mul_add(p, z, splat<VD>(0x1.565ba0406c001p-8));
  p = mul_add(p, z, splat<VD>(-0x1.b82ce15c3b7f8p-6));
  p = mul_add(p, z, splat<VD>(0x1.ce2f2197bc2efp-4));
  p = mul_add(p, z, splat<VD>(-0x1.812746b0271ecp-2));
  p = mul_add(p, z, splat<VD>(0x1.20dd750429b19p+0));
  return with_sign_of(x, m < 1.0 ? m * p : 1.0 - erfc_of_magnitude(m));
}

/// x^y with C's result for every special value. A negative finite base requires an integer
/// exponent, and an odd one gives the result the sign of x. All doubles from 2^53 on are even.
BRAID_INLINE VD pow(VD x, VD y) {
  const VD m = magnitude_of(x), half = y * 0.5;
  const auto whole = round_even(y) == y, odd = whole & (round_even(half) != half);
  VD r = exp(log(m) * y);
  r = m == 1.0 ? (y == y ? splat<VD>(1.0) : y) : r;  // log 1 * ∞ would be NaN
  r = odd ? with_sign_of(x, r) : r;
  r = ((x < 0.0) & (m != __builtin_inf()) & ~whole) ? splat<VD>(__builtin_nan("")) : r;
  return ((y == 0.0) | (x == 1.0)) ? splat<VD>(1.0) : r;
}

}  // namespace wide
}  // namespace
}  // namespace braid::cpu::BRAID_ISA
