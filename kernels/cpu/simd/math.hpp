#pragma once
#include "cpu/simd/vec.hpp"

// Elementary functions of float and double vectors, branch-free and without libm. The error for
// float is at most 4 ULP over all inputs (tests/kernels/test_unary.cpp); subnormals, infinities and
// NaN follow IEEE 754 and C. The polynomials are Braid's own minimax fits on the reduced range. The
// last bit may differ between instruction sets if one of them lacks fused multiply-add.
namespace braid::cpu::BRAID_ISA {
namespace {

/// 2^n * x for an integer n, given as float and as integer, |n| <= 252. Rounds once where the
/// result is subnormal.
BRAID_INLINE VF scale_by_power(VF x, [[maybe_unused]] VF n, [[maybe_unused]] VI n_integer) {
#if BRAID_VECTOR_BYTES == 64
  return (VF)_mm512_scalef_ps((__m512)x, (__m512)n);
#else
  const VI half = n_integer >> 1;
  return x * (VF)((half + 127) << 23) * (VF)((n_integer - half + 127) << 23);
#endif
}

/// e^x for -105 <= x <= 89 or NaN.
BRAID_INLINE VF exp_in_range(VF x) {
  // adding it rounds to an integer, which is then in the low bits
  const VF magic = splat<VF>(0x1.8p23f);
  const VF shifted = mul_add(x, splat<VF>(0x1.715476p0f), magic);
  const VF n = shifted - magic;
  // log 2 = 0x1.63p-1 - 0x1.bd0106p-13: the first product is exact
  VF r = mul_add(n, splat<VF>(-0x1.63p-1f), x);
  r = mul_add(n, splat<VF>(0x1.bd0106p-13f), r);
  VF p = mul_add(splat<VF>(0x1.6a2434p-10f), r, splat<VF>(0x1.1239e2p-7f));
  p = mul_add(p, r, splat<VF>(0x1.5558f2p-5f));
  p = mul_add(p, r, splat<VF>(0x1.555492p-3f));
  p = mul_add(p, r, splat<VF>(0x1.fffffcp-2f));
  p = mul_add(p * r, r, r) + 1.0f;
  return scale_by_power(p, n, (VI)shifted - (VI)magic);
}

BRAID_INLINE VF exp(VF x) {
  x = x > 89.0f ? splat<VF>(89.0f) : x;
  return exp_in_range(max_or_second(splat<VF>(-105.0f), x));
}
/// e^x for x <= 0 or NaN.
BRAID_INLINE VF exp_nonpositive(VF x) { return exp_in_range(max_or_second(splat<VF>(-105.0f), x)); }

BRAID_INLINE VF log(VF x) {
  const auto subnormal = x < 0x1p-126f;
  const VI bits = (VI)((VU)(subnormal ? x * 0x1p23f : x) - 0x3f3504f3u);  // unsigned: -0 wraps
  const VI exponent = (bits >> 23) - (subnormal & 23);
  const VF e = __builtin_convertvector(exponent, VF);
  const VF f = (VF)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  VF p = mul_add(splat<VF>(0x1.1457cap-4f), f, splat<VF>(-0x1.de3c46p-4f));
  p = mul_add(p, f, splat<VF>(0x1.e6f076p-4f));
  p = mul_add(p, f, splat<VF>(-0x1.fc22p-4f));
  p = mul_add(p, f, splat<VF>(0x1.233766p-3f));
  p = mul_add(p, f, splat<VF>(-0x1.555c4ep-3f));
  p = mul_add(p, f, splat<VF>(0x1.99a4b6p-3f));
  p = mul_add(p, f, splat<VF>(-0x1.000006p-2f));
  p = mul_add(p, f, splat<VF>(0x1.555548p-2f));
  const VF square = f * f;
  VF y = mul_add(e, splat<VF>(-0x1.bd0106p-13f), p * f * square);
  y = mul_add(e, splat<VF>(0x1.63p-1f), mul_add(square, splat<VF>(-0.5f), y) + f);
  y = x > 0.0f ? y : (x == 0.0f ? splat<VF>(-__builtin_inff()) : splat<VF>(__builtin_nanf("")));
  return x == __builtin_inff() ? x : y;
}

/// 1 / (1 + e^-x). For negative x it is e^x / (1 + e^x), which stays accurate down to the
/// subnormals.
BRAID_INLINE VF sigmoid(VF x) {
  const VF magnitude = (VF)((VI)x & 0x7fffffff);
  const VF e = exp_nonpositive(-magnitude);
  return (x >= 0.0f ? splat<VF>(1.0f) : e) / (e + 1.0f);
}

BRAID_INLINE VF tanh(VF x) {
  const VI sign = (VI)x & INT32_MIN;
  const VF magnitude = (VF)((VI)x ^ sign);
  const VF z = x * x;
  VF p = mul_add(splat<VF>(-0x1.75d50cp-8f), z, splat<VF>(0x1.5223dep-6f));
  p = mul_add(p, z, splat<VF>(-0x1.b83bf4p-5f));
  p = mul_add(p, z, splat<VF>(0x1.110724p-3f));
  p = mul_add(p, z, splat<VF>(-0x1.555532p-2f));
  const VF near = mul_add(p * z, x, x);
  const VF e = exp_nonpositive(magnitude * -2.0f);  // 1 - 2 e / (1 + e): no overflow for large x
  const VF far = 1.0f - (e + e) / (e + 1.0f);
  // also restores the sign of -0, which the sum in `near` loses
  return (VF)((VI)(magnitude < 0.625f ? near : far) | sign);
}

// ---- double

BRAID_INLINE VD scale_by_power(VD x, [[maybe_unused]] VD n, [[maybe_unused]] VL n_integer) {
#if BRAID_VECTOR_BYTES == 64
  return (VD)_mm512_scalef_pd((__m512d)x, (__m512d)n);
#else
  // SSE2 and AVX2 have no arithmetic shift of 64 bits, so a number made positive is halved. All of
  // it is unsigned, because a NaN's bits also get here and may wrap.
  const VUL u = (VUL)n_integer, half = ((u + 4096) >> 1) - 2048;
  return x * (VD)((half + 1023) << 52) * (VD)((u - half + 1023) << 52);
#endif
}

/// e^x, with an error of at most 1 ULP.
BRAID_INLINE VD exp(VD x) {
  x = x > 710.0 ? splat<VD>(710.0) : x;
  x = x < -746.0 ? splat<VD>(-746.0) : x;
  const VD magic = splat<VD>(0x1.8p52);
  const VD shifted = mul_add(x, splat<VD>(0x1.71547652b82fep0), magic);
  const VD n = shifted - magic;
  VD r = mul_add(n, splat<VD>(-0x1.62e42feep-1), x);
  r = mul_add(n, splat<VD>(-0x1.a39ef35793c76p-33), r);
  VD p = mul_add(splat<VD>(0x1.ad7f6bf5f76a4p-26), r, splat<VD>(0x1.28ad72d29a2f7p-22));
  p = mul_add(p, r, splat<VD>(0x1.71df255415158p-19));
  p = mul_add(p, r, splat<VD>(0x1.a0199a0c60674p-16));
  p = mul_add(p, r, splat<VD>(0x1.a01a012a56eaep-13));
  p = mul_add(p, r, splat<VD>(0x1.6c16c1842a146p-10));
  p = mul_add(p, r, splat<VD>(0x1.1111111127be7p-7));
  p = mul_add(p, r, splat<VD>(0x1.555555555087cp-5));
  p = mul_add(p, r, splat<VD>(0x1.55555555554fap-3));
  p = mul_add(p, r, splat<VD>(0x1.000000000000ap-1));
  p = mul_add(p * r, r, r) + 1.0;
  return scale_by_power(p, n, (VL)((VUL)shifted - (VUL)magic));
}
BRAID_INLINE VD exp_nonpositive(VD x) { return exp(x); }

/// log x, with an error of at most 2 ULP.
BRAID_INLINE VD log(VD x) {
  const auto subnormal = x < 0x1p-1022;
  const VUL bits = (VUL)(subnormal ? x * 0x1p54 : x) - std::uint64_t{0x3fe6a09e667f3bcd};
  // The exponent is made positive, so that a logical shift and a conversion of the low bits by
  // adding 2^52 are enough.
  const VUL biased = (bits + (std::uint64_t{2048} << 52)) >> 52;
  const VD e = (VD)(biased | std::uint64_t{0x4330000000000000}) - 0x1p52 -
               (subnormal ? splat<VD>(2048.0 + 54.0) : splat<VD>(2048.0));
  const VD f =
      (VD)((bits & std::uint64_t{0xfffffffffffff}) + std::uint64_t{0x3fe6a09e667f3bcd}) - 1.0;
  const VD s = f / (f + 2.0), z = s * s;
  VD r = mul_add(splat<VD>(0x1.2f0708accc81ap-3), z, splat<VD>(0x1.39a192fb673b5p-3));
  r = mul_add(r, z, splat<VD>(0x1.7466405d432bap-3));
  r = mul_add(r, z, splat<VD>(0x1.c71c5202b17b8p-3));
  r = mul_add(r, z, splat<VD>(0x1.24924941f8cb0p-2));
  r = mul_add(r, z, splat<VD>(0x1.999999997fd38p-2));
  r = mul_add(r, z, splat<VD>(0x1.5555555555592p-1));
  const VD half_square = f * 0.5 * f;
  const VD tail = mul_add(e, splat<VD>(0x1.a39ef35793c76p-33), s * mul_add(r, z, half_square));
  VD y = mul_add(e, splat<VD>(0x1.62e42feep-1), f - (half_square - tail));
  y = x > 0.0 ? y : (x == 0.0 ? splat<VD>(-__builtin_inf()) : splat<VD>(__builtin_nan("")));
  return x == __builtin_inf() ? x : y;
}

BRAID_INLINE VD sigmoid(VD x) {
  const VD e = exp((VD)((VL)x | INT64_MIN));  // -|x|
  return (x >= 0.0 ? splat<VD>(1.0) : e) / (e + 1.0);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
