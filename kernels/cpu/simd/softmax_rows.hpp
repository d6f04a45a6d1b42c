#pragma once
#include "cpu/simd/loaders.hpp"
#include "cpu/simd/math.hpp"

// The statistics of a row for softmax and cross entropy: its largest number m and s = Σ exp(x - m),
// computed in one pass over memory. Pieces of 8 Ki elements are read twice, the second time from
// the cache, and combined as in Milakov and Gimelshein 2018, arXiv:1805.02867.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kPiece = 8 * 1024;  // elements

/// The element struct in which lanes of E are computed: F32 or F64.
template <class E> using Computed = std::conditional_t<kThroughFloat<E>, F32, F64>;

template <class V> BRAID_INLINE Lane<V> exp_of(Lane<V> x) { return exp(splat<V>(x))[0]; }
template <class V> BRAID_INLINE Lane<V> log_of(Lane<V> x) { return log(splat<V>(x))[0]; }

struct MaxIgnoringNaN {
  template <class V> static BRAID_INLINE V join(V a, V b) {
    if constexpr (sizeof(V) == kVectorBytes) return max_or_second(b, a);
    else return b > a ? b : a;
  }
};

/// The largest of n > 0 numbers. NaNs are ignored; the result is -inf if there is nothing else.
template <class E>
BRAID_INLINE Lane<typename E::V> largest(const typename E::T* x, std::int64_t n) {
  using V = typename E::V;
  using M = Vec<std::conditional_t<sizeof(Lane<V>) == 4, std::int32_t, std::int64_t>, E::kLanes>;
  const V none = splat<V>(lowest<Lane<V>>());
  V m0 = none, m1 = none, m2 = none, m3 = none;
  for (; n >= 4 * E::kLanes; n -= 4 * E::kLanes, x += 4 * E::kLanes) {
    m0 = max_or_second(E::load(x), m0);
    m1 = max_or_second(E::load(x + E::kLanes), m1);
    m2 = max_or_second(E::load(x + 2 * E::kLanes), m2);
    m3 = max_or_second(E::load(x + 3 * E::kLanes), m3);
  }
  for (; n >= E::kLanes; n -= E::kLanes, x += E::kLanes) m0 = max_or_second(E::load(x), m0);
  if (n > 0) {
    const V v = E::load_first(x, static_cast<int>(n));
    m1 = max_or_second(iota<M>() < splat<M>(static_cast<Lane<M>>(n)) ? v : none, m1);
  }
  return join_lanes<MaxIgnoringNaN>(max_or_second(max_or_second(m0, m1), max_or_second(m2, m3)));
}

/// A source (tree.hpp) of exp(x - m), stored in `out`: the whole row if `keep`, else the last
/// block.
template <class E, bool keep> struct ExpSource {
  using V = typename E::V;
  using A = Lane<V>;
  const typename E::T* x;
  A max;
  A* out;
  std::int64_t start = 0;
  BRAID_INLINE void prepare(std::int64_t i, std::int64_t n) {
    start = keep ? 0 : i;
    A* to = out + (i - start);
    const typename E::T* from = x + i;
    const V m = splat<V>(max);
    for (; n >= E::kLanes; n -= E::kLanes, to += E::kLanes, from += E::kLanes)
      store(to, exp_nonpositive(E::load(from) - m));
    if (n > 0)
      store_first(to, exp_nonpositive(E::load_first(from, static_cast<int>(n)) - m),
                  static_cast<int>(n));
  }
  BRAID_INLINE V at(std::int64_t i) const { return load<V>(out + (i - start)); }
  BRAID_INLINE V first(std::int64_t i, int k) const { return load_first<V>(out + (i - start), k); }
};

/// max and the sum of exp(x - max). For a row of only -inf the sum is 0; a NaN makes it NaN.
template <class A> struct RowStats {
  A max, sum;
};

/// RowStats of at most kPiece elements.
template <class E> BRAID_INLINE auto piece_stats(const typename E::T* x, std::int64_t n) {
  using V = typename E::V;
  using A = Lane<V>;
  alignas(64) A block[kBlockElements];
  const A max = largest<E>(x, n);
  ExpSource<E, false> source{x, max == lowest<A>() ? A{} : max, block};
  return RowStats<A>{max, reduce_all<Sum, V>(source, n)};
}

template <class V>
BRAID_INLINE RowStats<Lane<V>> join_stats(RowStats<Lane<V>> a, RowStats<Lane<V>> b) {
  using A = Lane<V>;
  const A max = a.max > b.max ? a.max : b.max;
  if (max == lowest<A>()) return {max, a.sum + b.sum};
  return {max, a.sum * exp_of<V>(a.max - max) + b.sum * exp_of<V>(b.max - max)};
}

/// RowStats of n > 0 elements, on the calling thread, with pieces in order.
template <class E> auto row_stats(const typename E::T* x, std::int64_t n) {
  auto stats = piece_stats<E>(x, n < kPiece ? n : kPiece);
  for (std::int64_t i = kPiece; i < n; i += kPiece)
    stats =
        join_stats<typename E::V>(stats, piece_stats<E>(x + i, n - i < kPiece ? n - i : kPiece));
  return stats;
}

/// RowStats of one long row, shared by threads.
template <class E> auto shared_row_stats(const typename E::T* x, std::int64_t n, Stream& stream) {
  using V = typename E::V;
  const std::int64_t shared = shared_tile(n), tiles = (n + shared - 1) / shared;
  RowStats<Lane<V>> part[kMaxSharedTiles];
  const auto tile = [&](std::int64_t t) {
    part[t] = row_stats<E>(x + t * shared, n - t * shared < shared ? n - t * shared : shared);
  };
  parallel_for(stream, tiles, tile);
  auto stats = part[0];
  for (std::int64_t t = 1; t < tiles; ++t) stats = join_stats<V>(stats, part[t]);
  return stats;
}

/// log Σ exp(x) - max, separate for accuracy: x - max - log_sum is the log-softmax. NaN for a row
/// of only -inf.
template <class V> BRAID_INLINE Lane<V> log_sum(RowStats<Lane<V>> stats) {
  return stats.max == lowest<Lane<V>>() ? stats.max - stats.max : log_of<V>(stats.sum);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
