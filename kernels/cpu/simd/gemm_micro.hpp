#pragma once
#include "cpu/simd/elements.hpp"

// The inner loops of matrix products in float and double. Vectors run along the columns of C. An
// element of A is broadcast to all lanes, so A may have any strides. Every element of C is one
// chain of multiply-adds over k in order, whatever block it is in, so its bits do not depend on how
// C was split.
namespace braid::cpu::BRAID_ISA {
namespace {

#if defined(__clang__)
#define BRAID_UNROLL _Pragma("unroll")
#else
#define BRAID_UNROLL _Pragma("GCC unroll 16")
#endif

template <class T> using VecT = Vec<T, kVectorBytes / static_cast<int>(sizeof(T))>;
template <class T> constexpr int kLanesOf = kVectorBytes / static_cast<int>(sizeof(T));

// A block of C in registers: kRows × kColumnVectors accumulators, the vectors of a row of B, and
// one broadcast. There are 32 registers with AVX-512, else 16.
constexpr int kRows = 6;
constexpr int kColumnVectors = kVectorBytes == 64 ? 4 : 2;

/// C [m, n] = (accumulate ? C : 0) + A [m, k] B [k, n] + bias. A's element (i, p) is at a[i * a_row
/// + p * a_col]; B's rows are b_row apart.
template <class T> struct Product {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_col;
  const T* b;
  std::int64_t b_row;
  T* c;
  std::int64_t ldc;
  const T* bias;  // or null
  bool accumulate;
};

/// Loads the first `count` elements; the other lanes are zero.
template <class T> BRAID_INLINE VecT<T> load_lanes(const T* p, [[maybe_unused]] int count) {
#if BRAID_VECTOR_BYTES == 16
  VecT<T> v{p[0]};  // a copy of variable length would compile to a call
  if constexpr (kLanesOf<T> == 4) {
    if (count > 1) v[1] = p[1];
    if (count > 2) v[2] = p[2];
  }
  return v;
#else
  return load_first<VecT<T>>(p, count);
#endif
}

/// Writes the first `count` lanes. Masked stores are microcoded on some processors with AVX2, so
/// with AVX2 and SSE the lanes are written in smaller pieces.
template <class T> BRAID_INLINE void store_lanes(T* p, VecT<T> v, int count) {
#if BRAID_VECTOR_BYTES == 64
  store_first(p, v, count);
#else
  T lanes[kLanesOf<T>];
  __builtin_memcpy(lanes, &v, sizeof v);
  int i = 0;
  if constexpr (kLanesOf<T> >= 8) {
    if (count & 4) __builtin_memcpy(p, lanes, 4 * sizeof(T)), i = 4;
  }
  if constexpr (kLanesOf<T> >= 4) {
    if (count & 2) __builtin_memcpy(p + i, lanes + i, 2 * sizeof(T)), i += 2;
  }
  if (count & 1) p[i] = lanes[i];
#endif
}

/// Computes the block of C at rows [i, i + R), columns [j, j + V vectors). With Masked, the last
/// vector has only `last` columns.
template <class T, int R, int V, bool Masked>
BRAID_INLINE void multiply_block(const Product<T>& p, std::int64_t i, std::int64_t j, int last) {
  constexpr int lanes = kLanesOf<T>;
  VecT<T> sum[R][V];
  BRAID_UNROLL
  for (int v = 0; v < V; ++v) {
    VecT<T> first{};
    if (p.bias)
      first = Masked && v == V - 1 ? load_lanes<T>(p.bias + j + v * lanes, last)
                                   : load<VecT<T>>(p.bias + j + v * lanes);
    BRAID_UNROLL
    for (int r = 0; r < R; ++r) sum[r][v] = first;
  }
  const T* row[R];
  BRAID_UNROLL
  for (int r = 0; r < R; ++r) row[r] = p.a + (i + r) * p.a_row;
  const T* b = p.b + j;
  std::int64_t at = 0;
  for (std::int64_t step = 0; step < p.k; ++step) {
    VecT<T> bv[V];
    BRAID_UNROLL
    for (int v = 0; v < V; ++v)
      bv[v] =
          Masked && v == V - 1 ? load_lanes<T>(b + v * lanes, last) : load<VecT<T>>(b + v * lanes);
    BRAID_UNROLL
    for (int r = 0; r < R; ++r) {
      const VecT<T> av = splat<VecT<T>>(row[r][at]);
      BRAID_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = mul_add(av, bv[v], sum[r][v]);
    }
    at += p.a_col;
    b += p.b_row;
  }
  T* c = p.c + i * p.ldc + j;
  BRAID_UNROLL
  for (int r = 0; r < R; ++r, c += p.ldc) {
    BRAID_UNROLL
    for (int v = 0; v < V; ++v) {
      if (Masked && v == V - 1) {
        if (p.accumulate) sum[r][v] += load_lanes<T>(c + v * lanes, last);
        store_lanes<T>(c + v * lanes, sum[r][v], last);
      } else {
        if (p.accumulate) sum[r][v] += load<VecT<T>>(c + v * lanes);
        store(c + v * lanes, sum[r][v]);
      }
    }
  }
}

/// Computes all rows of a group of V vectors of columns.
template <class T, int V, bool Masked>
__attribute__((noinline)) void multiply_columns(const Product<T>& p, std::int64_t j, int last) {
  std::int64_t i = 0;
  for (; i + kRows <= p.m; i += kRows) multiply_block<T, kRows, V, Masked>(p, i, j, last);
  static_assert(kRows == 6);
  switch (p.m - i) {
    case 5: return multiply_block<T, 5, V, Masked>(p, i, j, last);
    case 4: return multiply_block<T, 4, V, Masked>(p, i, j, last);
    case 3: return multiply_block<T, 3, V, Masked>(p, i, j, last);
    case 2: return multiply_block<T, 2, V, Masked>(p, i, j, last);
    case 1: return multiply_block<T, 1, V, Masked>(p, i, j, last);
    default: return;
  }
}

template <class T, int V>
BRAID_INLINE void multiply_columns(const Product<T>& p, std::int64_t j, int last) {
  if (last == kLanesOf<T>) {
    multiply_columns<T, V, false>(p, j, last);
  } else {
    multiply_columns<T, V, true>(p, j, last);
  }
}

/// Computes the whole product. Requires m, n > 0.
template <class T> BRAID_INLINE void multiply(const Product<T>& p) {
  constexpr int lanes = kLanesOf<T>;
  std::int64_t j = 0;
  std::int64_t vectors = (p.n + lanes - 1) / lanes;
  for (; vectors > kColumnVectors + (kColumnVectors > 2 ? 1 : 0);
       vectors -= kColumnVectors, j += kColumnVectors * lanes)
    multiply_columns<T, kColumnVectors, false>(p, j, lanes);
  const int last = static_cast<int>(p.n - j - (vectors - 1) * lanes);
  if constexpr (kColumnVectors > 2) {
    if (vectors == 5) {  // two medium groups instead of a full one and a narrow one
      multiply_columns<T, 3, false>(p, j, lanes);
      j += 3 * lanes;
      vectors = 2;
    }
    if (vectors == 4) return multiply_columns<T, 4>(p, j, last);
    if (vectors == 3) return multiply_columns<T, 3>(p, j, last);
  }
  if (vectors == 2) return multiply_columns<T, 2>(p, j, last);
  multiply_columns<T, 1>(p, j, last);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
