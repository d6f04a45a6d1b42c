#pragma once
#include "cpu/simd/gemm_micro.hpp"

// Products in which both A and B are contiguous along k (B is stored [n, k]) and m or n is small:
// dot products along k. An element of C is the sum of the vector's lanes, combined in a fixed tree,
// so its bits do not depend on how C was split.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr int kDotRows = kVectorBytes == 64 ? 4 : 2;
constexpr int kDotColumns = 4;

template <class V> BRAID_INLINE Lane<V> sum_lanes(V v) {
  if constexpr (sizeof(V) == 2 * sizeof(Lane<V>)) {
    return v[0] + v[1];
  } else {
    using Half = Vec<Lane<V>, sizeof(V) / sizeof(Lane<V>) / 2>;
    Half low, high;
#if BRAID_VECTOR_BYTES == 64
    if constexpr (sizeof(V) == 64) {
      low = (Half)_mm256_castsi256_ps(_mm512_castsi512_si256((__m512i)v));
      high = (Half)_mm512_extractf64x4_pd((__m512d)v, 1);
      return sum_lanes(low + high);
    }
#endif
    __builtin_memcpy(&low, &v, sizeof low);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
    return sum_lanes(low + high);
  }
}

/// As Product, but B's element (p, j) is at b[j * b_row + p], and a_col is 1.
template <class T, int R, int J>
BRAID_INLINE void dot_block(const Product<T>& p, std::int64_t i, std::int64_t j) {
  constexpr int lanes = kLanesOf<T>;
  VecT<T> sum[R][J] = {};
  const T* a = p.a + i * p.a_row;
  const T* b = p.b + j * p.b_row;
  std::int64_t at = 0;
  for (; at + lanes <= p.k; at += lanes) {
    VecT<T> bv[J];
    BRAID_UNROLL
    for (int c = 0; c < J; ++c) bv[c] = load<VecT<T>>(b + c * p.b_row + at);
    BRAID_UNROLL
    for (int r = 0; r < R; ++r) {
      const VecT<T> av = load<VecT<T>>(a + r * p.a_row + at);
      BRAID_UNROLL
      for (int c = 0; c < J; ++c) sum[r][c] = mul_add(av, bv[c], sum[r][c]);
    }
  }
  if (at < p.k) {
    const int rest = static_cast<int>(p.k - at);
    VecT<T> bv[J];
    BRAID_UNROLL
    for (int c = 0; c < J; ++c) bv[c] = load_lanes<T>(b + c * p.b_row + at, rest);
    BRAID_UNROLL
    for (int r = 0; r < R; ++r) {
      const VecT<T> av = load_lanes<T>(a + r * p.a_row + at, rest);
      BRAID_UNROLL
      for (int c = 0; c < J; ++c) sum[r][c] = mul_add(av, bv[c], sum[r][c]);
    }
  }
  BRAID_UNROLL
  for (int r = 0; r < R; ++r) {
    T* out = p.c + (i + r) * p.ldc + j;
    BRAID_UNROLL
    for (int c = 0; c < J; ++c) {
      T value = sum_lanes(sum[r][c]);
      if (p.bias) value += p.bias[j + c];
      out[c] = p.accumulate ? out[c] + value : value;
    }
  }
}

template <class T, int R>
__attribute__((noinline)) void dot_rows(const Product<T>& p, std::int64_t i) {
  std::int64_t j = 0;
  for (; j + kDotColumns <= p.n; j += kDotColumns) dot_block<T, R, kDotColumns>(p, i, j);
  static_assert(kDotColumns == 4);
  switch (p.n - j) {
    case 3: return dot_block<T, R, 3>(p, i, j);
    case 2: return dot_block<T, R, 2>(p, i, j);
    case 1: return dot_block<T, R, 1>(p, i, j);
    default: return;
  }
}

/// Computes the whole product.
template <class T> BRAID_INLINE void multiply_dot(const Product<T>& p) {
  std::int64_t i = 0;
  for (; i + kDotRows <= p.m; i += kDotRows) dot_rows<T, kDotRows>(p, i);
  if constexpr (kDotRows == 4) {
    if (p.m - i == 3) return dot_rows<T, 3>(p, i);
    if (p.m - i == 2) return dot_rows<T, 2>(p, i);
  }
  if (p.m - i == 1) dot_rows<T, 1>(p, i);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
