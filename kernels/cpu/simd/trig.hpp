#pragma once
#include "cpu/simd/math.hpp"

// Sine and cosine of float vectors, at most 2 ULP for every float. The angle is reduced by
// quadrants in double; beyond 2^20 with exact integers (Payne and Hanek 1983).
namespace braid::cpu::BRAID_ISA {
namespace {

/// The angle minus the nearest multiple of π/2, and the low bits of that multiple.
struct ReducedAngle {
  VF angle;
  VI quadrant;
};

/// The reduced angle of one number in radians, and its quadrant. 2/π is stored to 224 bits. Integer
/// multiples of 4 are dropped from the product with the 24-bit mantissa.
struct ReducedScalar {
  float angle;
  std::int32_t quadrant;
};
BRAID_INLINE ReducedScalar reduce_large(float x) {
  static constexpr std::uint32_t kTwoOverPi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                                 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
  // |x| = mantissa * 2^exponent, exponent > -24
  const int exponent = static_cast<int>((bits >> 23) & 0xff) - 150;
  const std::uint64_t mantissa = (bits & 0x7fffff) | 0x800000;
  // 96 bits of 2/π, of which the first weighs 2^(1 - exponent). The bits above contribute multiples
  // of 4 to the product. kTwoOverPi starts 32 bits above the binary point, so bit i weighs
  // 2^(31 - i).
  const int first = exponent + 30;
  const int word = first >> 5, shift = first & 31;
  std::uint64_t window[3];
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t pair =
        static_cast<std::uint64_t>(kTwoOverPi[word + i]) << 32 | kTwoOverPi[word + i + 1];
    window[i] = (pair << shift) >> 32;
  }
  // The upper 64 bits of mantissa * window, modulo 2^96. Bit 95 weighs 2^1, so the integer part is
  // modulo 4.
  const std::uint64_t low = mantissa * window[2], middle = mantissa * window[1] + (low >> 32);
  // bit 63 weighs 2^1: quarter turns in 2.62 fixed point
  const std::uint64_t product = (mantissa * window[0] << 32) + middle;
  const std::uint64_t quadrant = (product + (std::uint64_t{1} << 61)) >> 62;
  const double fraction =
      static_cast<double>(static_cast<std::int64_t>(product - (quadrant << 62)));
  const float angle = static_cast<float>(fraction * 0x1.921fb54442d18p-62);  // π/2 * 2^-62
  const bool negative = (bits >> 31) != 0;
  return {negative ? -angle : angle,
          negative ? -static_cast<std::int32_t>(quadrant) : static_cast<std::int32_t>(quadrant)};
}

BRAID_INLINE ReducedAngle reduce_angle(VF x) {
  const DoublePair wide = to_double(x);
  const VD magic = splat<VD>(0x1.8p52);
  const auto reduce = [&](VD v, VD& n) {
    n = v * 0x1.45f306dc9c883p-1 + magic - magic;
    // π/2 in two parts: 33 bits, whose product with n < 2^20 is exact, and the rest
    return (v - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34;
  };
  VD n_low, n_high;
  const VD low = reduce(wide.low, n_low), high = reduce(wide.high, n_high);
  ReducedAngle r{to_float(low, high), __builtin_convertvector(to_float(n_low, n_high), VI)};
  const auto large = (VF)((VI)x & 0x7fffffff) > 0x1p20f;
  if (__builtin_expect(any(large), 0)) {
    for (int i = 0; i < kFloatLanes; ++i) {
      if (!large[i]) continue;
      const bool finite = x[i] - x[i] == 0.0f;
      const ReducedScalar s = finite ? reduce_large(x[i]) : ReducedScalar{__builtin_nanf(""), 0};
      r.angle[i] = s.angle;
      r.quadrant[i] = s.quadrant;
    }
  }
  return r;
}

/// sin of the angle plus `turn` quarter turns: 0 for the sine, 1 for the cosine.
BRAID_INLINE VF sine_of(const ReducedAngle& r, int turn) {
  const VI quadrant = r.quadrant + turn;
  const VF t = r.angle, s = t * t;
  VF sine = mul_add(splat<VF>(-0x1.994e88p-13f), s, splat<VF>(0x1.11076p-7f));
  sine = mul_add(sine, s, splat<VF>(-0x1.555546p-3f));
  sine = mul_add(sine * s, t, t);
  VF cosine = mul_add(splat<VF>(0x1.9a0232p-16f), s, splat<VF>(-0x1.6c0c8cp-10f));
  cosine = mul_add(cosine, s, splat<VF>(0x1.55554ap-5f));
  cosine = mul_add(cosine * s, s, mul_add(s, splat<VF>(-0.5f), splat<VF>(1.0f)));
  const VF value = (quadrant & 1) != 0 ? cosine : sine;
  return (VF)((VI)value ^ ((quadrant & 2) << 30));
}

// x == 0 is returned as it is, which keeps the sign of -0
BRAID_INLINE VF sin(VF x) { return x == 0.0f ? x : sine_of(reduce_angle(x), 0); }
BRAID_INLINE VF cos(VF x) { return sine_of(reduce_angle(x), 1); }

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
