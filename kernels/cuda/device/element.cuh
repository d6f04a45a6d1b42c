#pragma once
#include <type_traits>

#include <braid/core/dtype.hpp>

#include "simt/simt.hpp"

namespace braid { class Stream; }

// One struct for each dtype: the types in which its elements are stored (T) and computed (A).
// float16 and bfloat16 are computed in float and rounded to nearest even when stored; integers wrap
// around.
namespace braid::cuda {

#define BRAID_DEVICE __device__ __forceinline__
#define BRAID_HOST_DEVICE __host__ __device__ __forceinline__

template <class Stored, class Computed, DType D> struct Element {
  using T = Stored;
  using A = Computed;
  static constexpr DType kDType = D;
  static constexpr bool kFloating = D >= DType::float16;
  static BRAID_HOST_DEVICE A load(T x) { return static_cast<A>(x); }
  static BRAID_HOST_DEVICE T store(A x) { return static_cast<T>(x); }
  /// A value out of the range of an integer dtype gives the low bits of the nearest int64; NaN
  /// gives 0. The CPU's scalars do the same.
  static BRAID_HOST_DEVICE T from_double(double x) {
    if constexpr (D == DType::bool_) {
      return x != 0.0 ? 1 : 0;
    } else if constexpr (kFloating) {
      return store(static_cast<A>(x));
    } else {
      if (!(x == x)) return 0;
      if (x >= 0x1p63) return static_cast<T>(INT64_MAX);
      if (x < -0x1p63) return static_cast<T>(INT64_MIN);
      return static_cast<T>(static_cast<std::int64_t>(x));
    }
  }
};

using B8 = Element<std::uint8_t, std::uint8_t, DType::bool_>;
using U8 = Element<std::uint8_t, std::uint8_t, DType::uint8>;
using I32 = Element<std::int32_t, std::int32_t, DType::int32>;
using I64 = Element<std::int64_t, std::int64_t, DType::int64>;
using F16 = Element<simt::half_t, float, DType::float16>;
using BF16 = Element<simt::bfloat16_t, float, DType::bfloat16>;
using F32 = Element<float, float, DType::float32>;
using F64 = Element<double, double, DType::float64>;

/// Calls f.template operator()<E>() with the element struct of a dtype. Returns false if the dtype
/// is not floating-point.
template <class F> bool with_floating(DType t, F&& f) {
  switch (t) {
    case DType::float16: f.template operator()<F16>(); return true;
    case DType::bfloat16: f.template operator()<BF16>(); return true;
    case DType::float32: f.template operator()<F32>(); return true;
    case DType::float64: f.template operator()<F64>(); return true;
    default: return false;
  }
}
/// The same for integers and bool.
template <class F> bool with_integer(DType t, F&& f) {
  switch (t) {
    case DType::bool_: f.template operator()<B8>(); return true;
    case DType::uint8: f.template operator()<U8>(); return true;
    case DType::int32: f.template operator()<I32>(); return true;
    case DType::int64: f.template operator()<I64>(); return true;
    default: return false;
  }
}
template <class F> void with_element(DType t, F&& f) {
  if (!with_floating(t, f)) (void)with_integer(t, f);
}
/// Calls f.template operator()<U>() with the unsigned type of an element's size, to copy bits.
template <class F> void with_bits(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<std::uint8_t>();
    case 2: return f.template operator()<std::uint16_t>();
    case 4: return f.template operator()<std::uint32_t>();
    default: return f.template operator()<std::uint64_t>();
  }
}

/// N elements that are read and written in accesses of up to 16 bytes.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T v[N];
};
template <int N, class T> BRAID_DEVICE Pack<T, N> load_pack(const T* p) {
  if constexpr (sizeof(Pack<T, N>) <= 16) return simt::load_vector<Pack<T, N>>(p);
  else return *reinterpret_cast<const Pack<T, N>*>(p);
}
template <int N, class T> BRAID_DEVICE void store_pack(T* p, const Pack<T, N>& pack) {
  if constexpr (sizeof(pack) <= 16) simt::store_vector(p, pack);
  else *reinterpret_cast<Pack<T, N>*>(p) = pack;
}
/// True if packs may be read and written at p.
template <int N, class T> BRAID_HOST_DEVICE bool is_aligned(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % alignof(Pack<T, N>) == 0;
}
/// The number of elements of T that fill an access of 16 bytes.
template <class T> inline constexpr int kWidest = static_cast<int>(16 / sizeof(T));

}  // namespace braid::cuda
