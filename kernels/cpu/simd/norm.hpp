#pragma once
#include "cpu/runtime/scratch.hpp"
#include "cpu/simd/row_writes.hpp"
#include "cpu/simd/tree.hpp"

// Shared by the normalisations: sums about a mean, and sums over tiles of rows that are combined in
// a tree.
namespace braid::cpu::BRAID_ISA {
namespace {

/// The first k lanes of v; the other lanes are zero.
template <class V> BRAID_INLINE V first_lanes(V v, int k) {
  using M = Vec<std::conditional_t<sizeof(Lane<V>) == 4, std::int32_t, std::int64_t>, kLanesOf<V>>;
  return iota<M>() < splat<M>(static_cast<Lane<M>>(k)) ? v : V{};
}

template <class V> BRAID_INLINE Lane<V> root(Lane<V> x) { return sqrt(splat<V>(x))[0]; }

/// A source (tree.hpp) of (x - mean)².
template <class E> struct SquaredDeviations {
  using V = typename E::V;
  const typename E::T* p;
  V mean;
  BRAID_INLINE void prepare(std::int64_t, std::int64_t) {}
  BRAID_INLINE V at(std::int64_t i) const {
    const V d = E::load(p + i) - mean;
    return d * d;
  }
  BRAID_INLINE V first(std::int64_t i, int k) const {
    const V d = first_lanes(E::load_first(p + i, k) - mean, k);
    return d * d;
  }
};

/// A source of dy (x - mean), for elements that share a weight.
template <class E> struct Moments {
  using V = typename E::V;
  const typename E::T* x;
  const typename E::T* dy;
  V mean;
  BRAID_INLINE void prepare(std::int64_t, std::int64_t) {}
  BRAID_INLINE V at(std::int64_t i) const { return E::load(dy + i) * (E::load(x + i) - mean); }
  BRAID_INLINE V first(std::int64_t i, int k) const {
    return E::load_first(dy + i, k) * first_lanes(E::load_first(x + i, k) - mean, k);
  }
};

/// y[i] = (x[i] - mean) rstd weight + bias, with one weight and bias for all elements.
template <class E>
BRAID_INLINE void normalise_run(const typename E::T* x, typename E::T* y, std::int64_t n,
                                Lane<typename E::V> mean, Lane<typename E::V> rstd,
                                Lane<typename E::V> weight, Lane<typename E::V> bias) {
  using V = typename E::V;
  const V m = splat<V>(mean), r = splat<V>(rstd), w = splat<V>(weight), b = splat<V>(bias);
  write_row<E>(y, n, false,
               [&](std::int64_t i, int k) { return (load_lanes<E>(x + i, k) - m) * r * w + b; });
}

/// One element of E as a computed number; `none` for a null pointer.
template <class E>
BRAID_INLINE Lane<typename E::V> number(const void* p, std::int64_t i, Lane<typename E::V> none) {
  return p == nullptr ? none : E::load_first(static_cast<const typename E::T*>(p) + i, 1)[0];
}
template <class E> BRAID_INLINE void put(void* p, std::int64_t i, Lane<typename E::V> value) {
  E::store_first(static_cast<typename E::T*>(p) + i, splat<typename E::V>(value), 1);
}

/// Returns the number of rows of a tile, which has separate sums: at most 64 tiles, each of a
/// multiple of `unit` rows. Depends on the shape alone.
BRAID_INLINE std::int64_t rows_of_tile(std::int64_t rows, std::int64_t unit) {
  std::int64_t tile = unit;
  while (tile < 16 || tile * 64 < rows) tile *= 2;
  return tile;
}

/// Calls write for Σ_t parts[t * apart + j], summed as a tree over t, for j in [0, n).
template <class E, class F>
void join_tiles(const Lane<typename E::V>* parts, std::int64_t apart, std::int64_t tiles,
                std::int64_t n, Stream& stream, F write) {
  using V = typename E::V;
  constexpr std::int64_t kColumns = 1024;
  constexpr int lanes = kLanesOf<V>;
  const auto columns = [&](std::int64_t c) {
    const std::int64_t end = (c + 1) * kColumns < n ? (c + 1) * kColumns : n;
    for (std::int64_t j = c * kColumns; j < end; j += lanes) {
      const int k = end - j < lanes ? static_cast<int>(end - j) : lanes;
      Cascade<Sum, V> cascade;
      for (std::int64_t t = 0; t < tiles; ++t)
        cascade.push(
            k == lanes ? load<V>(parts + t * apart + j) : load_first<V>(parts + t * apart + j, k),
            0);
      write(j, k, cascade.finish());
    }
  };
  if (n <= kColumns) columns(0);
  else parallel_for(stream, (n + kColumns - 1) / kColumns, columns);
}
template <class E>
void join_tiles_to(void* out, const Lane<typename E::V>* parts, std::int64_t apart,
                   std::int64_t tiles, std::int64_t n, Stream& stream) {
  typename E::T* to = static_cast<typename E::T*>(out);
  join_tiles<E>(parts, apart, tiles, n, stream, [=](std::int64_t j, int k, typename E::V sum) {
    if (k == kLanesOf<typename E::V>) E::store(to + j, sum);
    else E::store_first(to + j, sum, k);
  });
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
