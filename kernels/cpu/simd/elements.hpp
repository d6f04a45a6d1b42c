#pragma once
#include "cpu/simd/vec.hpp"

// One struct for each dtype: how stored elements (T) are converted to the lanes of a vector for
// computing (V) and back. float16 and bfloat16 are computed in float and rounded to nearest even
// when stored.
namespace braid::cpu::BRAID_ISA {
namespace {

BRAID_INLINE float half_to_float(std::uint16_t h) {
  const std::uint32_t rest = static_cast<std::uint32_t>(h & 0x7fffu) << 13;
  // Multiplying by 2^112 adjusts the exponent bias and normalizes subnormals exactly.
  const std::uint32_t finite =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, rest) * 0x1p112f);
  return __builtin_bit_cast(float, (rest >= 0x0f800000u ? rest | 0x7f800000u : finite) |
                                       static_cast<std::uint32_t>(h & 0x8000u) << 16);
}
BRAID_INLINE std::uint16_t float_to_half(float value) {
  const std::uint32_t u = __builtin_bit_cast(std::uint32_t, value), sign = (u >> 16) & 0x8000u,
                      magnitude = u & 0x7fffffffu;
  std::uint32_t bits;
  if (magnitude > 0x7f800000u) {
    bits = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
    bits = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {
    bits = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  } else {  // subnormal: adding 0.5 aligns the mantissa and rounds to nearest even
    bits = __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) -
           0x3f000000u;
  }
  return static_cast<std::uint16_t>(sign | bits);
}
BRAID_INLINE float bfloat_to_float(std::uint16_t b) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(b) << 16);
}
BRAID_INLINE std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t u = __builtin_bit_cast(std::uint32_t, value);
  return static_cast<std::uint16_t>(value != value ? (u >> 16) | 0x40u
                                                   : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/// Out of range gives the nearest int64; NaN gives 0.
BRAID_INLINE std::int64_t double_to_int64(double value) {
  if (!(value == value)) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value < -0x1p63) return INT64_MIN;
  return static_cast<std::int64_t>(value);
}

/// Loads and stores of elements that are computed in the type in which they are stored.
template <class Stored, DType D> struct Plain {
  using T = Stored;
  static constexpr DType kDType = D;
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  using V = Vec<T, kLanes>;
  static BRAID_INLINE V load(const T* p) { return BRAID_ISA::load<V>(p); }
  static BRAID_INLINE V load_first(const T* p, int k) { return BRAID_ISA::load_first<V>(p, k); }
  static BRAID_INLINE void store(T* p, V v) { BRAID_ISA::store(p, v); }
  static BRAID_INLINE void store_first(T* p, V v, int k) { BRAID_ISA::store_first(p, v, k); }
};

struct F32 : Plain<float, DType::float32> {
  static BRAID_INLINE T from_double(double x) { return static_cast<float>(x); }
};
struct F64 : Plain<double, DType::float64> {
  static BRAID_INLINE T from_double(double x) { return x; }
};
struct I64 : Plain<std::int64_t, DType::int64> {
  static BRAID_INLINE T from_double(double x) { return double_to_int64(x); }
};
struct I32 : Plain<std::int32_t, DType::int32> {
  static BRAID_INLINE T from_double(double x) { return static_cast<T>(double_to_int64(x)); }
};
struct U8 : Plain<std::uint8_t, DType::uint8> {
  static BRAID_INLINE T from_double(double x) { return static_cast<T>(double_to_int64(x)); }
};
/// bool: bytes 0 and 1.
struct B8 : Plain<std::uint8_t, DType::bool_> {
  static BRAID_INLINE T from_double(double x) { return x != 0; }
};

/// A 16-bit format computed in float. Format has static VF widen(H) and static H narrow(VF).
template <class Format, DType D> struct Narrow {
  using T = std::uint16_t;
  static constexpr DType kDType = D;
  static constexpr int kLanes = kFloatLanes;
  using V = VF;
  using H = Vec<std::uint16_t, kFloatLanes>;
  static BRAID_INLINE V load(const T* p) { return Format::widen(BRAID_ISA::load<H>(p)); }
  static BRAID_INLINE V load_first(const T* p, int k) {
    return Format::widen(BRAID_ISA::load_first<H>(p, k));
  }
  static BRAID_INLINE void store(T* p, V v) { BRAID_ISA::store(p, Format::narrow(v)); }
  static BRAID_INLINE void store_first(T* p, V v, int k) {
    BRAID_ISA::store_first(p, Format::narrow(v), k);
  }
};

struct F16 : Narrow<F16, DType::float16> {
  static BRAID_INLINE T from_double(double x) { return float_to_half(static_cast<float>(x)); }
  static BRAID_INLINE T from_float(float x) { return float_to_half(x); }
  static BRAID_INLINE float to_float(T x) { return half_to_float(x); }
  static BRAID_INLINE VF widen(H h) {
#if BRAID_VECTOR_BYTES == 64
    return (VF)_mm512_cvtph_ps((__m256i)h);
#elif BRAID_VECTOR_BYTES == 32
    return (VF)_mm256_cvtph_ps((__m128i)h);
#else
    const VU u = __builtin_convertvector(h, VU);
    const VU rest = (u & 0x7fffu) << 13;
    const VU finite = (VU)((VF)rest * 0x1p112f);
    return (VF)((rest >= splat<VU>(0x0f800000u) ? (rest | 0x7f800000u) : finite) | (u & 0x8000u)
                                                                                       << 16);
#endif
  }
  static BRAID_INLINE H narrow(VF value) {
#if BRAID_VECTOR_BYTES == 64
    return (H)_mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif BRAID_VECTOR_BYTES == 32
    return (H)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    const VU u = (VU)value, magnitude = u & 0x7fffffffu;
    const VU nan = splat<VU>(0x7e00u) | ((magnitude >> 13) & 0x3ffu);
    const VU normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const VU subnormal = (VU)((VF)magnitude + 0.5f) - 0x3f000000u;
    VU bits = (VI)magnitude < splat<VI>(0x38800000) ? subnormal : normal;
    bits = (VI)magnitude > splat<VI>(0x477fefff) ? splat<VU>(0x7c00u) : bits;
    bits = (VI)magnitude > splat<VI>(0x7f800000) ? nan : bits;
    return __builtin_convertvector(bits | ((u >> 16) & 0x8000u), H);
#endif
  }
};

struct BF16 : Narrow<BF16, DType::bfloat16> {
  static BRAID_INLINE T from_double(double x) { return float_to_bfloat(static_cast<float>(x)); }
  static BRAID_INLINE T from_float(float x) { return float_to_bfloat(x); }
  static BRAID_INLINE float to_float(T x) { return bfloat_to_float(x); }
  static BRAID_INLINE VF widen(H h) { return (VF)(__builtin_convertvector(h, VU) << 16); }
  static BRAID_INLINE H narrow(VF value) {
    const VU u = (VU)value;
    const VU rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return __builtin_convertvector(value != value ? ((u >> 16) | 0x40u) : rounded, H);
  }
};

template <class E> constexpr bool kFloating = E::kDType >= DType::float16;
/// True for dtypes computed in float: float32, float16, bfloat16.
template <class E> constexpr bool kThroughFloat = std::is_same_v<typename E::V, VF>;

constexpr int element_bytes(DType t) {
  switch (t) {
    case DType::bool_:
    case DType::uint8: return 1;
    case DType::float16:
    case DType::bfloat16: return 2;
    case DType::int32:
    case DType::float32: return 4;
    default: return 8;
  }
}

/// Calls f.template operator()<E>() with the element struct of a dtype.
template <class F>
BRAID_INLINE auto with_floating(DType t, F&& f) -> decltype(f.template operator()<F32>()) {
  switch (t) {
    case DType::float32: return f.template operator()<F32>();
    case DType::float64: return f.template operator()<F64>();
    case DType::float16: return f.template operator()<F16>();
    case DType::bfloat16: return f.template operator()<BF16>();
    default: return {};
  }
}
template <class F>
BRAID_INLINE auto with_element(DType t, F&& f) -> decltype(f.template operator()<F32>()) {
  switch (t) {
    case DType::bool_: return f.template operator()<B8>();
    case DType::uint8: return f.template operator()<U8>();
    case DType::int32: return f.template operator()<I32>();
    case DType::int64: return f.template operator()<I64>();
    default: return with_floating(t, f);
  }
}

/// Converts comparison results to bytes 0 and 1.
template <class M> BRAID_INLINE auto mask_to_bytes(M mask) {
  using Bytes = Vec<std::uint8_t, sizeof(M) / sizeof(Lane<M>)>;
  if constexpr (sizeof(Lane<M>) == 1) return (Bytes)mask & 1;
  else return __builtin_convertvector(mask, Bytes) & 1;
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
