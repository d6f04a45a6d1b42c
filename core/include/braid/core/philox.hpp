#pragma once
#include <cstdint>

// Random numbers that depend only on (seed, stream, element): the same bits on every device, for
// every split and number of threads.
//
// Generator   Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as
//             1, 2, 3"). Key = seed (low, high word); counter = (block low, block high, stream low,
//             stream high). A block is four 32-bit words w0 … w3.
// 32-bit      Element i of float32, float16, bfloat16 uses block i/4.
//             uniform: u = (w[i%4] >> 8) * 2^-24, in [0, 1).
//             normal:  words 0, 1 give elements 0, 1 of the block, words 2, 3 give elements 2, 3
//             (Box-Muller: radius from the even word, angle from the odd one).
// 64-bit      Element i of float64 and int64 uses the whole block i, as two draws:
//             d0 = w0 + 2^32 w1, d1 = w2 + 2^32 w3.
//             uniform: u = (d0 >> 11) * 2^-53.
//             normal: radius from d0, angle from d1; only the cosine is used.
//             integers: low + the upper 64 bits of d0 * (high - low).
// In a range  low + u * (high - low) with one rounding, at most the largest number of the dtype
//             below high; mean + z * deviation with one rounding. float16 and bfloat16 are the
//             rounded float32 number.
//
// The floating-point functions are written once, over a policy `O` with the few operations that
// differ between scalars, vectors and devices. Each product that is added to something is an
// explicit fused multiply-add, so that no compiler option can change a bit.
#if defined(__CUDACC__)
#define BRAID_HD __host__ __device__ __forceinline__
#elif defined(__GNUC__)
// always inlined, so files compiled for one instruction set may include this
#define BRAID_HD inline __attribute__((always_inline))
#else
#define BRAID_HD inline
#endif

namespace braid {

/// One block: four 32-bit words.
struct PhiloxBlock {
  std::uint32_t w[4];
};

namespace detail {

/// Ten rounds on the counters c0 … c3, words or vectors of words. O::multiply(x, m, high, low)
/// computes both halves of x * m.
template <class O, class U>
BRAID_HD constexpr void philox_rounds(U& c0, U& c1, U& c2, U& c3, std::uint64_t seed) {
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    U high0{}, low0{}, high1{}, low1{};
    O::multiply(c0, 0xD2511F53u, high0, low0);
    O::multiply(c2, 0xCD9E8D57u, high1, low1);
    c0 = high1 ^ c1 ^ k0;
    c2 = high0 ^ c3 ^ k1;
    c1 = low1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/// The policy for one float (F = float) or double at a time, on the host or a CUDA device.
struct ScalarRandom {
  static BRAID_HD constexpr void multiply(std::uint32_t x, std::uint32_t m, std::uint32_t& high,
                                          std::uint32_t& low) {
    const std::uint64_t product = static_cast<std::uint64_t>(x) * m;
    high = static_cast<std::uint32_t>(product >> 32);
    low = static_cast<std::uint32_t>(product);
  }
#if defined(__CUDA_ARCH__)
  static BRAID_HD float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
  static BRAID_HD double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
  static BRAID_HD float sqrt(float x) { return __fsqrt_rn(x); }
  static BRAID_HD double sqrt(double x) { return __dsqrt_rn(x); }
  static BRAID_HD double divide(double a, double b) { return __ddiv_rn(a, b); }
  static BRAID_HD float to_floating(std::int32_t x) { return __int2float_rn(x); }
  static BRAID_HD float to_floating(std::uint32_t x) { return __uint2float_rn(x); }
  static BRAID_HD double to_floating(std::int64_t x) { return __ll2double_rn(x); }
  static BRAID_HD float from_bits(std::uint32_t x) { return __uint_as_float(x); }
  static BRAID_HD double from_bits(std::uint64_t x) {
    return __longlong_as_double(static_cast<long long>(x));
  }
  static BRAID_HD std::uint32_t to_bits(float x) { return __float_as_uint(x); }
  static BRAID_HD std::uint64_t to_bits(double x) {
    return static_cast<std::uint64_t>(__double_as_longlong(x));
  }
#else
  static BRAID_HD float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static BRAID_HD double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
  static BRAID_HD float sqrt(float x) { return __builtin_sqrtf(x); }
  static BRAID_HD double sqrt(double x) { return __builtin_sqrt(x); }
  static BRAID_HD double divide(double a, double b) { return a / b; }
  static BRAID_HD float to_floating(std::int32_t x) { return static_cast<float>(x); }
  static BRAID_HD float to_floating(std::uint32_t x) { return static_cast<float>(x); }
  static BRAID_HD double to_floating(std::int64_t x) { return static_cast<double>(x); }
  static BRAID_HD float from_bits(std::uint32_t x) { return __builtin_bit_cast(float, x); }
  static BRAID_HD double from_bits(std::uint64_t x) { return __builtin_bit_cast(double, x); }
  static BRAID_HD std::uint32_t to_bits(float x) { return __builtin_bit_cast(std::uint32_t, x); }
  static BRAID_HD std::uint64_t to_bits(double x) { return __builtin_bit_cast(std::uint64_t, x); }
#endif
  static BRAID_HD std::int32_t to_signed(std::uint32_t x) { return static_cast<std::int32_t>(x); }
  static BRAID_HD std::int64_t to_signed(std::uint64_t x) { return static_cast<std::int64_t>(x); }
  template <class F, class T> static BRAID_HD F constant(T x) { return x; }
};

// Minimax polynomials: (log(1+f) - f + f²/2) / f³ for f in [sqrt(1/2)-1, sqrt(2)-1]; (sin t - t) /
// t³ and (cos t - 1 + t²/2) / t⁴ in t² for |t| <= π/4.

/// log u for 2^-33 <= u <= 1: u = 2^e (1 + f).
template <class O, class F, class U> BRAID_HD F normal_log_32(F u) {
  const auto c = [](float x) { return O::template constant<F>(x); };
  const U bits = O::to_bits(u) - 0x3f3504f3u;
  const F e = O::to_floating(O::to_signed(bits) >> 23);
  const F f = O::from_bits((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  F p = O::fma(c(0x1.1457cap-4f), f, c(-0x1.de3c46p-4f));
  p = O::fma(p, f, c(0x1.e6f076p-4f));
  p = O::fma(p, f, c(-0x1.fc22p-4f));
  p = O::fma(p, f, c(0x1.233766p-3f));
  p = O::fma(p, f, c(-0x1.555c4ep-3f));
  p = O::fma(p, f, c(0x1.99a4b6p-3f));
  p = O::fma(p, f, c(-0x1.000006p-2f));
  p = O::fma(p, f, c(0x1.555548p-2f));
  p = O::fma(p, f, c(-0.5f));
  const F square = f * f;
  // log 2 = 0x1.63p-1 - 0x1.bd0106p-13
  const F small = O::fma(e, c(-0x1.bd0106p-13f), p * square) + f;
  return O::fma(e, c(0x1.63p-1f), small);
}

/// Computes two standard normal numbers from two words.
template <class O, class F, class U>
BRAID_HD void normal_pair_32(U radius_word, U angle_word, F& z0, F& z1) {
  const auto c = [](float x) { return O::template constant<F>(x); };
  const F u = O::fma(O::to_floating(radius_word), c(0x1p-32f), c(0x1p-33f));
  const F radius = O::sqrt(normal_log_32<O, F, U>(u) * -2.0f);
  // The angle is 2π angle_word / 2^32. Its nearest multiple of π/2 is subtracted in integers,
  // exactly.
  const U quadrant = (angle_word + 0x20000000u) >> 30;
  const F t = O::to_floating(O::to_signed(angle_word - (quadrant << 30))) * 0x1.921fb6p-30f;
  const F s = t * t;
  F sine = O::fma(c(-0x1.994e88p-13f), s, c(0x1.11076p-7f));
  sine = O::fma(sine, s, c(-0x1.555546p-3f));
  sine = O::fma(sine, s * t, t);
  F cosine = O::fma(c(0x1.9a0232p-16f), s, c(-0x1.6c0c8cp-10f));
  cosine = O::fma(cosine, s, c(0x1.55554ap-5f));
  cosine = O::fma(O::fma(cosine, s, c(-0.5f)), s, c(1.0f));
  const auto odd = (quadrant & 1u) != 0u;
  const U sign = (quadrant & 2u) << 30;
  z0 = radius * O::from_bits(O::to_bits(odd ? -sine : cosine) ^ sign);
  z1 = radius * O::from_bits(O::to_bits(odd ? cosine : sine) ^ sign);
}

/// log u for 2^-54 <= u <= 1: u = 2^e (1 + f), s = f / (2 + f),
/// log(1 + f) = f - f²/2 + s (f²/2 + s² R(s²)).
template <class O, class F, class U> BRAID_HD F normal_log_64(F u) {
  const auto c = [](double x) { return O::template constant<F>(x); };
  const U bits = O::to_bits(u) - std::uint64_t{0x3fe6a09e667f3bcd};
  const F e = O::to_floating(O::to_signed(bits) >> 52);
  const F f =
      O::from_bits((bits & std::uint64_t{0xfffffffffffff}) + std::uint64_t{0x3fe6a09e667f3bcd}) -
      1.0;
  const F s = O::divide(f, f + 2.0);
  const F z = s * s;
  F r = O::fma(c(0x1.2f0708accc81ap-3), z, c(0x1.39a192fb673b5p-3));
  r = O::fma(r, z, c(0x1.7466405d432bap-3));
  r = O::fma(r, z, c(0x1.c71c5202b17b8p-3));
  r = O::fma(r, z, c(0x1.24924941f8cb0p-2));
  r = O::fma(r, z, c(0x1.999999997fd38p-2));
  r = O::fma(r, z, c(0x1.5555555555592p-1));
  const F half = f * 0.5;  // exact
  // log 2 = 0x1.62e42feep-1 + 0x1.a39ef35793c76p-33
  const F tail = O::fma(e, c(0x1.a39ef35793c76p-33), s * O::fma(r, z, half * f));
  return O::fma(e, c(0x1.62e42feep-1), f - O::fma(half, f, -tail));
}

/// Computes a standard normal number from two 64-bit draws.
template <class O, class F, class U> BRAID_HD F normal_64(U radius_draw, U angle_draw) {
  const auto c = [](double x) { return O::template constant<F>(x); };
  const F u = O::fma(O::to_floating(O::to_signed(radius_draw >> 11)), c(0x1p-53), c(0x1p-54));
  const F radius = O::sqrt(normal_log_64<O, F, U>(u) * -2.0);
  const U quadrant = (angle_draw + (std::uint64_t{1} << 61)) >> 62;
  const F t = O::to_floating(O::to_signed(angle_draw - (quadrant << 62))) * 0x1.921fb54442d18p-62;
  const F s = t * t;
  F sine = O::fma(c(0x1.5d93183b611ebp-33), s, c(-0x1.ae5e668812dd6p-26));
  sine = O::fma(sine, s, c(0x1.71de357815f42p-19));
  sine = O::fma(sine, s, c(-0x1.a01a019c1202cp-13));
  sine = O::fma(sine, s, c(0x1.111111110f87dp-7));
  sine = O::fma(sine, s, c(-0x1.5555555555549p-3));
  sine = O::fma(sine, s * t, t);
  F cosine = O::fma(c(-0x1.8faeb61e0e6a5p-37), s, c(0x1.1ee9ec1908d4cp-29));
  cosine = O::fma(cosine, s, c(-0x1.27e4f80a346d5p-22));
  cosine = O::fma(cosine, s, c(0x1.a01a019cb217cp-16));
  cosine = O::fma(cosine, s, c(-0x1.6c16c16c15181p-10));
  cosine = O::fma(cosine, s, c(0x1.555555555554cp-5));
  cosine = O::fma(O::fma(cosine, s, c(-0.5)), s, c(1.0));
  const auto odd = (quadrant & std::uint64_t{1}) != std::uint64_t{0};
  const U sign = (quadrant & std::uint64_t{2}) << 62;
  return radius * O::from_bits(O::to_bits(odd ? -sine : cosine) ^ sign);
}

}  // namespace detail

/// Block `block` of the random stream (seed, stream).
[[nodiscard]] BRAID_HD constexpr PhiloxBlock philox(std::uint64_t seed, std::uint64_t stream,
                                                    std::uint64_t block) {
  PhiloxBlock b{{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}};
  detail::philox_rounds<detail::ScalarRandom>(b.w[0], b.w[1], b.w[2], b.w[3], seed);
  return b;
}

/// 64 random bits: draw d0 of block i. For shuffles and other uses of plain bits.
[[nodiscard]] BRAID_HD constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream,
                                                           std::uint64_t i) {
  const PhiloxBlock b = philox(seed, stream, i);
  return b.w[0] | static_cast<std::uint64_t>(b.w[1]) << 32;
}

/// Element i of uniform numbers in [0, 1).
[[nodiscard]] BRAID_HD constexpr float random_uniform_float(std::uint64_t seed,
                                                            std::uint64_t stream, std::uint64_t i) {
  return static_cast<float>(philox(seed, stream, i / 4).w[i % 4] >> 8) * 0x1p-24f;
}
[[nodiscard]] BRAID_HD constexpr double random_uniform_double(std::uint64_t seed,
                                                              std::uint64_t stream,
                                                              std::uint64_t i) {
  return static_cast<double>(random_bits(seed, stream, i) >> 11) * 0x1p-53;
}

/// Element i of standard normal numbers.
[[nodiscard]] BRAID_HD float random_normal_float(std::uint64_t seed, std::uint64_t stream,
                                                 std::uint64_t i) {
  const PhiloxBlock b = philox(seed, stream, i / 4);
  const int pair = static_cast<int>(i % 4) & 2;
  float z0, z1;
  detail::normal_pair_32<detail::ScalarRandom, float, std::uint32_t>(b.w[pair], b.w[pair + 1], z0,
                                                                     z1);
  return (i & 1) != 0 ? z1 : z0;
}
[[nodiscard]] BRAID_HD double random_normal_double(std::uint64_t seed, std::uint64_t stream,
                                                   std::uint64_t i) {
  const PhiloxBlock b = philox(seed, stream, i);
  return detail::normal_64<detail::ScalarRandom, double, std::uint64_t>(
      b.w[0] | static_cast<std::uint64_t>(b.w[1]) << 32, b.w[2] | static_cast<std::uint64_t>(b.w[3])
                                                                      << 32);
}

/// Upper 64 bits of a * b.
[[nodiscard]] BRAID_HD constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32),
                      cross = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (cross >> 32);
}

/// Element i of uniform integers in [low, high), low < high. Differs from exactly uniform by less
/// than (high - low) / 2^64.
[[nodiscard]] BRAID_HD constexpr std::int64_t random_integer(std::uint64_t seed,
                                                             std::uint64_t stream, std::uint64_t i,
                                                             std::int64_t low, std::int64_t high) {
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                   multiply_high(random_bits(seed, stream, i), range));
}

}  // namespace braid
