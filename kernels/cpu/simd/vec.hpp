#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__SSE2__)
// g++ 12 warns about its own _mm512_undefined_ps wherever it is inlined (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

#include "cpu/simd/kernels.hpp"

// Vectors of the widest registers that this compilation may use, as compiler vector extensions: + -
// * / < ?: work lane by lane. Intrinsics are used only for what the extensions lack: masked loads,
// square root, fused multiply-add, and conversions between widths. Everything is in an unnamed
// namespace (see kernels.hpp).
#define BRAID_INLINE inline __attribute__((always_inline))

namespace braid::cpu::BRAID_ISA {
namespace {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define BRAID_VECTOR_BYTES 64
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define BRAID_VECTOR_BYTES 32
#else
#define BRAID_VECTOR_BYTES 16
#endif
constexpr int kVectorBytes = BRAID_VECTOR_BYTES;
constexpr int kFloatLanes = kVectorBytes / 4;
constexpr int kDoubleLanes = kVectorBytes / 8;

template <class T, int N> struct VecOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N> using Vec = typename VecOf<T, N>::type;
/// The type of one lane.
template <class V> using Lane = std::remove_cvref_t<decltype((*static_cast<V*>(nullptr))[0])>;

using VF = Vec<float, kFloatLanes>;
using VI = Vec<std::int32_t, kFloatLanes>;
using VU = Vec<std::uint32_t, kFloatLanes>;
using VD = Vec<double, kDoubleLanes>;
using VL = Vec<std::int64_t, kDoubleLanes>;
using VUL = Vec<std::uint64_t, kDoubleLanes>;

/// A vector with `value` in every lane. Subtracting zero keeps the sign of -0; adding would not.
template <class V, class T> BRAID_INLINE V splat(T value) { return value - V{}; }

/// The vector 0, 1, 2, …
template <class V> BRAID_INLINE V iota() {
  V v{};
  constexpr int lanes = sizeof(V) / sizeof(Lane<V>);
  for (int i = 0; i < lanes; ++i) v[i] = static_cast<Lane<V>>(i);
  return v;
}

template <class V, class T> BRAID_INLINE V load(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V, class T> BRAID_INLINE void store(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

#if BRAID_VECTOR_BYTES == 32
BRAID_INLINE __m256i first_lanes_4(int k) { return (__m256i)(iota<VI>() < splat<VI>(k)); }
BRAID_INLINE __m256i first_lanes_8(int k) {
  return (__m256i)(iota<VL>() < splat<VL>(std::int64_t{k}));
}
#endif

/// Loads the first k elements of *p, 0 < k < lanes; the other lanes are zero. Does not access
/// memory beyond them.
template <class V, class T> BRAID_INLINE V load_first(const T* p, int k) {
#if BRAID_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64 && sizeof(T) == 4)
    return (V)_mm512_maskz_loadu_epi32((__mmask16)((1u << k) - 1), p);
  else if constexpr (sizeof(V) == 64 && sizeof(T) == 8)
    return (V)_mm512_maskz_loadu_epi64((__mmask8)((1u << k) - 1), p);
  else if constexpr (sizeof(V) == 32 && sizeof(T) == 2)
    return (V)_mm256_maskz_loadu_epi16((__mmask16)((1u << k) - 1), p);
  else if constexpr (sizeof(V) == 64 && sizeof(T) == 1)
    return (V)_mm512_maskz_loadu_epi8((__mmask64)((1ull << k) - 1), p);
#elif BRAID_VECTOR_BYTES == 32
  if constexpr (sizeof(V) == 32 && sizeof(T) == 4)
    return (V)_mm256_maskload_epi32((const int*)p, first_lanes_4(k));
  else if constexpr (sizeof(V) == 32 && sizeof(T) == 8)
    return (V)_mm256_maskload_epi64((const long long*)p, first_lanes_8(k));
#endif
  V v{};
  __builtin_memcpy(&v, p, static_cast<std::size_t>(k) * sizeof(T));
  return v;
}

/// Writes the first k lanes, 0 < k < lanes, and nothing else.
template <class V, class T> BRAID_INLINE void store_first(T* p, V v, int k) {
#if BRAID_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64 && sizeof(T) == 4)
    return _mm512_mask_storeu_epi32(p, (__mmask16)((1u << k) - 1), (__m512i)v);
  else if constexpr (sizeof(V) == 64 && sizeof(T) == 8)
    return _mm512_mask_storeu_epi64(p, (__mmask8)((1u << k) - 1), (__m512i)v);
  else if constexpr (sizeof(V) == 32 && sizeof(T) == 2)
    return _mm256_mask_storeu_epi16(p, (__mmask16)((1u << k) - 1), (__m256i)v);
  else if constexpr (sizeof(V) == 64 && sizeof(T) == 1)
    return _mm512_mask_storeu_epi8(p, (__mmask64)((1ull << k) - 1), (__m512i)v);
#elif BRAID_VECTOR_BYTES == 32
  if constexpr (sizeof(V) == 32 && sizeof(T) == 4)
    return _mm256_maskstore_epi32((int*)p, first_lanes_4(k), (__m256i)v);
  else if constexpr (sizeof(V) == 32 && sizeof(T) == 8)
    return _mm256_maskstore_epi64((long long*)p, first_lanes_8(k), (__m256i)v);
#endif
  __builtin_memcpy(p, &v, static_cast<std::size_t>(k) * sizeof(T));
}

/// Writes a vector past the caches; p must be aligned to kVectorBytes. Call stream_fence() after
/// the last one.
template <class V> BRAID_INLINE void stream_store(void* p, V v) {
#if BRAID_VECTOR_BYTES == 64
  _mm512_stream_si512((__m512i*)p, (__m512i)v);
#elif BRAID_VECTOR_BYTES == 32
  _mm256_stream_si256((__m256i*)p, (__m256i)v);
#elif defined(__SSE2__)
  _mm_stream_si128((__m128i*)p, (__m128i)v);
#else
  store(static_cast<char*>(p), v);
#endif
}
BRAID_INLINE void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// True if any lane of a comparison's result is set.
template <class M> BRAID_INLINE bool any(M mask) {
  constexpr int words = sizeof(M) / 8;
  std::uint64_t word[words];
  __builtin_memcpy(word, &mask, sizeof mask);
  std::uint64_t bits = 0;
  for (int i = 0; i < words; ++i) bits |= word[i];
  return bits != 0;
}

/// a > b ? a : b, so b if either is NaN; one instruction.
BRAID_INLINE VF max_or_second(VF a, VF b) {
#if BRAID_VECTOR_BYTES == 64
  return (VF)_mm512_max_ps((__m512)a, (__m512)b);
#elif BRAID_VECTOR_BYTES == 32
  return (VF)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  return (VF)_mm_max_ps((__m128)a, (__m128)b);
#else
  return a > b ? a : b;
#endif
}
BRAID_INLINE VD max_or_second(VD a, VD b) {
#if BRAID_VECTOR_BYTES == 64
  return (VD)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif BRAID_VECTOR_BYTES == 32
  return (VD)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
  return (VD)_mm_max_pd((__m128d)a, (__m128d)b);
#else
  return a > b ? a : b;
#endif
}

/// Correctly rounded square roots.
BRAID_INLINE VF sqrt(VF x) {
#if BRAID_VECTOR_BYTES == 64
  return (VF)_mm512_sqrt_ps((__m512)x);
#elif BRAID_VECTOR_BYTES == 32
  return (VF)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
  return (VF)_mm_sqrt_ps((__m128)x);
#else
  for (int i = 0; i < kFloatLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
BRAID_INLINE VD sqrt(VD x) {
#if BRAID_VECTOR_BYTES == 64
  return (VD)_mm512_sqrt_pd((__m512d)x);
#elif BRAID_VECTOR_BYTES == 32
  return (VD)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__)
  return (VD)_mm_sqrt_pd((__m128d)x);
#else
  for (int i = 0; i < kDoubleLanes; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}

/// a * b + c, fused if the processor supports it: for polynomials whose last bit may differ between
/// instruction sets.
BRAID_INLINE VF mul_add(VF a, VF b, VF c) {
#if BRAID_VECTOR_BYTES == 64
  return (VF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif BRAID_VECTOR_BYTES == 32
  return (VF)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
BRAID_INLINE VD mul_add(VD a, VD b, VD c) {
#if BRAID_VECTOR_BYTES == 64
  return (VD)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif BRAID_VECTOR_BYTES == 32
  return (VD)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

/// a * b + c with one rounding on every processor; slow without hardware FMA. For results that must
/// be the same on every machine.
BRAID_INLINE VF fused_mul_add(VF a, VF b, VF c) {
#if BRAID_VECTOR_BYTES >= 32
  return mul_add(a, b, c);
#else
  for (int i = 0; i < kFloatLanes; ++i) a[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return a;
#endif
}
BRAID_INLINE VD fused_mul_add(VD a, VD b, VD c) {
#if BRAID_VECTOR_BYTES >= 32
  return mul_add(a, b, c);
#else
  for (int i = 0; i < kDoubleLanes; ++i) a[i] = __builtin_fma(a[i], b[i], c[i]);
  return a;
#endif
}

/// The lower and upper half of the lanes, widened.
struct DoublePair {
  VD low, high;
};
BRAID_INLINE DoublePair to_double(VF v) {
#if BRAID_VECTOR_BYTES == 64
  return {(VD)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v)),
          (VD)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1))};
#elif BRAID_VECTOR_BYTES == 32
  return {(VD)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v)),
          (VD)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1))};
#elif defined(__SSE2__)
  return {(VD)_mm_cvtps_pd((__m128)v), (VD)_mm_cvtps_pd(_mm_movehl_ps((__m128)v, (__m128)v))};
#else
  DoublePair r{};
  for (int i = 0; i < kDoubleLanes; ++i) r.low[i] = v[i], r.high[i] = v[i + kDoubleLanes];
  return r;
#endif
}
BRAID_INLINE VF to_float(VD low, VD high) {
#if BRAID_VECTOR_BYTES == 64
  return (VF)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low)),
                                _mm512_cvtpd_ps((__m512d)high), 1);
#elif BRAID_VECTOR_BYTES == 32
  return (VF)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)low)),
                                  _mm256_cvtpd_ps((__m256d)high), 1);
#elif defined(__SSE2__)
  return (VF)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)low), _mm_cvtpd_ps((__m128d)high));
#else
  VF r{};
  for (int i = 0; i < kDoubleLanes; ++i)
    r[i] = static_cast<float>(low[i]), r[i + kDoubleLanes] = static_cast<float>(high[i]);
  return r;
#endif
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
