#pragma once
#include "simt/mode.hpp"

/// float16 and bfloat16 for kernels: the toolkit's __half and __nv_bfloat16 if there is a toolkit,
/// otherwise our types with the same names and bits. Convert with float(x) and half_t(f), or with
/// the toolkit's functions below. Both round to nearest even.
#if !SIMT_EMULATED

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#else

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "simt/types.hpp"

namespace braid::simt::detail {

/// IEEE binary16 bits of f, rounded to nearest even.
[[nodiscard]] inline std::uint16_t half_bits(float f) noexcept {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(f), sign = u >> 16 & 0x8000u,
                      magnitude = u & 0x7fffffffu;
  // NaN: the toolkit's canonical NaN
  if (magnitude > 0x7f800000u) return 0x7fff;
  // rounds to 65536 or more
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {  // normal
    const std::uint32_t m = magnitude - 0x38000000u;
    return static_cast<std::uint16_t>(sign | ((m + 0xfffu + (m >> 13 & 1)) >> 13));
  }
  // Subnormal: after adding 0.5, the float addition itself rounds at bit 2^-24.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
}

[[nodiscard]] inline float half_value(std::uint16_t h) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16,
                      exponent = h >> 10 & 31u, mantissa = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

[[nodiscard]] inline std::uint16_t bfloat16_bits(float f) noexcept {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

[[nodiscard]] inline float bfloat16_value(std::uint16_t b) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

}  // namespace braid::simt::detail

// SIMT_HALF(type, pair, to_bits, to_float): a 16-bit type, its pair type, and the toolkit's
// operators. A sum, product or quotient that is computed in float and then rounded is correctly
// rounded, because float has more than twice as many significand bits.
#define SIMT_HALF(type, pair, to_bits, to_float)                                           \
  struct [[gnu::may_alias]] alignas(2) type {                                              \
    std::uint16_t bits;                                                                    \
    type() = default;                                                                      \
    type(float f) noexcept : bits(to_bits(f)) {} /* NOLINT(google-explicit-constructor) */ \
    explicit type(double d) noexcept : type(static_cast<float>(d)) {}                      \
    template <class I>                                                                     \
      requires std::is_integral_v<I>                                                       \
    explicit type(I i) noexcept : type(static_cast<float>(i)) {}                           \
    operator float() const noexcept {                                                      \
      return to_float(bits);                                                               \
    } /* NOLINT(google-explicit-constructor) */                                            \
  };                                                                                       \
  struct [[gnu::may_alias]] alignas(4) pair {                                              \
    type x, y;                                                                             \
  };                                                                                       \
  inline type operator+(type a, type b) noexcept { return type(float(a) + float(b)); }     \
  inline type operator-(type a, type b) noexcept { return type(float(a) - float(b)); }     \
  inline type operator*(type a, type b) noexcept { return type(float(a) * float(b)); }     \
  inline type operator/(type a, type b) noexcept { return type(float(a) / float(b)); }     \
  inline type operator-(type a) noexcept {                                                 \
    a.bits = static_cast<std::uint16_t>(a.bits ^ 0x8000u);                                 \
    return a;                                                                              \
  }                                                                                        \
  inline type& operator+=(type& a, type b) noexcept { return a = a + b; }                  \
  inline type& operator-=(type& a, type b) noexcept { return a = a - b; }                  \
  inline type& operator*=(type& a, type b) noexcept { return a = a * b; }                  \
  inline type& operator/=(type& a, type b) noexcept { return a = a / b; }                  \
  inline bool operator==(type a, type b) noexcept { return float(a) == float(b); }         \
  inline bool operator!=(type a, type b) noexcept { return float(a) != float(b); }         \
  inline bool operator<(type a, type b) noexcept { return float(a) < float(b); }           \
  inline bool operator<=(type a, type b) noexcept { return float(a) <= float(b); }         \
  inline bool operator>(type a, type b) noexcept { return float(a) > float(b); }           \
  inline bool operator>=(type a, type b) noexcept { return float(a) >= float(b); }         \
  inline type __hadd(type a, type b) noexcept { return a + b; }                            \
  inline type __hsub(type a, type b) noexcept { return a - b; }                            \
  inline type __hmul(type a, type b) noexcept { return a * b; }                            \
  inline type __hdiv(type a, type b) noexcept { return a / b; }                            \
  inline type __hneg(type a) noexcept { return -a; }                                       \
  inline bool __hisnan(type a) noexcept { return std::isnan(float(a)); }                   \
  inline pair __hadd2(pair a, pair b) noexcept { return {a.x + b.x, a.y + b.y}; }          \
  inline pair __hmul2(pair a, pair b) noexcept { return {a.x * b.x, a.y * b.y}; }

SIMT_HALF(__half, __half2, braid::simt::detail::half_bits, braid::simt::detail::half_value)
SIMT_HALF(__nv_bfloat16, __nv_bfloat162, braid::simt::detail::bfloat16_bits,
          braid::simt::detail::bfloat16_value)
#undef SIMT_HALF
using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline __half __float2half(float f) noexcept { return __half(f); }
inline __half __float2half_rn(float f) noexcept { return __half(f); }
inline float __half2float(__half h) noexcept { return float(h); }
inline __half2 __floats2half2_rn(float x, float y) noexcept { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 f) noexcept { return {__half(f.x), __half(f.y)}; }
inline float2 __half22float2(__half2 h) noexcept { return {float(h.x), float(h.y)}; }
inline unsigned short __half_as_ushort(__half h) noexcept { return h.bits; }
inline __half __ushort_as_half(unsigned short bits) noexcept {
  __half h;
  h.bits = bits;
  return h;
}
inline __nv_bfloat16 __float2bfloat16(float f) noexcept { return __nv_bfloat16(f); }
inline __nv_bfloat16 __float2bfloat16_rn(float f) noexcept { return __nv_bfloat16(f); }
inline float __bfloat162float(__nv_bfloat16 b) noexcept { return float(b); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) noexcept {
  return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 f) noexcept {
  return {__nv_bfloat16(f.x), __nv_bfloat16(f.y)};
}
inline float2 __bfloat1622float2(__nv_bfloat162 b) noexcept { return {float(b.x), float(b.y)}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) noexcept { return b.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) noexcept {
  __nv_bfloat16 b;
  b.bits = bits;
  return b;
}

#endif

namespace braid::simt {
using half_t = __half;
using half2_t = __half2;
using bfloat16_t = __nv_bfloat16;
using bfloat162_t = __nv_bfloat162;
}  // namespace braid::simt
