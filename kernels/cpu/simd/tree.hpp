#pragma once
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"
#include "cpu/simd/walk.hpp"

// Reductions in a fixed order: the same for every number of threads, every split into tiles, every
// layout and every instruction set.
//
// The elements x[0] … x[n-1] are arranged in rows of 16 lanes. First the rows are combined as a
// binary tree over the row index (aligned at powers of two; missing rows at the end are left out),
// then the 16 lanes: l with l + 8, l + 4, l + 2, l + 1. Every x passes at most ⌈log2 n⌉ additions,
// which bounds the error of a sum by ⌈log2 n⌉ u Σ|x|.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr int kRowLanes = 16;
constexpr std::int64_t kBlockRows = 16;
constexpr std::int64_t kBlockElements = kBlockRows * kRowLanes;

template <class V> constexpr int kLanesOf = sizeof(V) / sizeof(Lane<V>);

/// A row: 16 lanes in one or several vectors.
template <class V> struct Row {
  static constexpr int kVectors = kRowLanes / kLanesOf<V>;
  V v[kVectors];
};

/// The operations that combine two lanes. `neutral` fills lanes that have no element.
struct Sum {
  template <class T> static constexpr T neutral() { return T{}; }
  template <class V> static BRAID_INLINE V join(V a, V b) { return a + b; }
};
template <class T> constexpr T lowest() {
  if constexpr (std::is_same_v<T, float>) return -__builtin_inff();
  else if constexpr (std::is_same_v<T, double>) return -__builtin_inf();
  else if constexpr (sizeof(T) == 4) return INT32_MIN;
  else return INT64_MIN;
}
template <class T> constexpr T highest() {
  if constexpr (std::is_same_v<T, float>) return __builtin_inff();
  else if constexpr (std::is_same_v<T, double>) return __builtin_inf();
  else if constexpr (sizeof(T) == 4) return INT32_MAX;
  else return INT64_MAX;
}
/// The larger; a NaN wins. Of two equal ones (0 and -0), the second.
struct Max {
  template <class T> static constexpr T neutral() { return lowest<T>(); }
  template <class V> static BRAID_INLINE V join(V a, V b) { return a != a ? a : (a > b ? a : b); }
};
struct Min {
  template <class T> static constexpr T neutral() { return highest<T>(); }
  template <class V> static BRAID_INLINE V join(V a, V b) { return a != a ? a : (a < b ? a : b); }
};

/// The first k lanes of v; the others are `neutral`.
template <class C, class V> BRAID_INLINE V keep_first(V v, int k) {
  if constexpr (std::is_same_v<C, Sum>) {
    return v;  // a partial load fills with zeros
  } else {
    using M =
        Vec<std::conditional_t<sizeof(Lane<V>) == 4, std::int32_t, std::int64_t>, kLanesOf<V>>;
    return iota<M>() < splat<M>(static_cast<Lane<M>>(k)) ? v
                                                         : splat<V>(C::template neutral<Lane<V>>());
  }
}

/// A row whose last lanes may be missing: `left` > 0 elements from i.
template <class C, class V, class S>
BRAID_INLINE Row<V> partial_row(S& source, std::int64_t i, std::int64_t left) {
  constexpr int lanes = kLanesOf<V>;
  Row<V> row;
  for (int c = 0; c < Row<V>::kVectors; ++c, i += lanes, left -= lanes) {
    if (left >= lanes) row.v[c] = source.at(i);
    else if (left > 0)
      row.v[c] = keep_first<C>(source.first(i, static_cast<int>(left)), static_cast<int>(left));
    else row.v[c] = splat<V>(C::template neutral<Lane<V>>());
  }
  return row;
}

/// Combines the vectors at i of R rows; R is a power of two.
template <class C, int R, class S> BRAID_INLINE auto tree_of(S& source, std::int64_t i) {
  if constexpr (R == 1) {
    return source.at(i);
  } else {
    const auto a = tree_of<C, R / 2>(source, i);
    const auto b = tree_of<C, R / 2>(source, i + R / 2 * kRowLanes);
    return C::join(a, b);
  }
}
template <class C, int R, class V, class S> BRAID_INLINE Row<V> rows_of(S& source, std::int64_t i) {
  Row<V> row;
  for (int c = 0; c < Row<V>::kVectors; ++c) row.v[c] = tree_of<C, R>(source, i + c * kLanesOf<V>);
  return row;
}

template <class C, class V> BRAID_INLINE Row<V> join_rows(const Row<V>& a, const Row<V>& b) {
  Row<V> r;
  for (int c = 0; c < Row<V>::kVectors; ++c) r.v[c] = C::join(a.v[c], b.v[c]);
  return r;
}

/// The aligned binary tree over a sequence of subtrees, implemented as a binary counter. A subtree
/// has 2^level rows, and levels must not increase.
template <class C, class T> class Cascade {
 public:
  BRAID_INLINE void push(T value, int level) {
    for (std::uint64_t c = count_ >> level; (c & 1) != 0; c >>= 1)
      value = join(stack_[--top_], value);
    stack_[top_++] = value;
    count_ += std::uint64_t{1} << level;
  }
  /// Requires that at least one subtree was pushed.
  BRAID_INLINE T finish() {
    T value = stack_[--top_];
    while (top_ > 0) value = join(stack_[--top_], value);
    return value;
  }

 private:
  template <class V> static BRAID_INLINE Row<V> join(const Row<V>& a, const Row<V>& b) {
    return join_rows<C>(a, b);
  }
  template <class A> static BRAID_INLINE A join(const A& a, const A& b) { return C::join(a, b); }
  T stack_[48];
  int top_ = 0;
  std::uint64_t count_ = 0;
};

/// Reduces elements [begin, begin + n) of a source to one row. Requires n > 0 and a `begin` that is
/// a multiple of 16. A source has prepare(i, k), called before elements [i, i + k), k <= 256, are
/// read; at(i), a vector; and first(i, k), its first k lanes and zeros.
template <class C, class V, class S>
__attribute__((noinline)) Row<V> reduce_rows(S& source, std::int64_t begin, std::int64_t n) {
  if (n <= kRowLanes) {
    source.prepare(begin, n);
    return partial_row<C, V>(source, begin, n);
  }
  Cascade<C, Row<V>> cascade;
  std::int64_t i = begin, left = n;
  for (; left >= kBlockElements; i += kBlockElements, left -= kBlockElements) {
    source.prepare(i, kBlockElements);
    cascade.push(rows_of<C, 16, V>(source, i), 4);
  }
  if (left > 0) {
    source.prepare(i, left);
    for (; left >= 4 * kRowLanes; i += 4 * kRowLanes, left -= 4 * kRowLanes)
      cascade.push(rows_of<C, 4, V>(source, i), 2);
    for (; left > 0; i += kRowLanes, left -= kRowLanes)
      cascade.push(partial_row<C, V>(source, i, left), 0);
  }
  return cascade.finish();
}

/// Combines the lanes of a vector, halves with halves.
template <class C, class V> BRAID_INLINE Lane<V> join_lanes(V v) {
  using T = Lane<V>;
  if constexpr (kLanesOf<V> == 1) {
    return v[0];
  } else if constexpr (sizeof(V) > 16) {
    using H = Vec<T, kLanesOf<V> / 2>;
    H half[2];
    __builtin_memcpy(half, &v, sizeof v);
    return join_lanes<C>(C::join(half[0], half[1]));
  } else if constexpr (kLanesOf<V> == 4) {
    return C::join(C::join(T{v[0]}, T{v[2]}), C::join(T{v[1]}, T{v[3]}));
  } else {
    return C::join(T{v[0]}, T{v[1]});
  }
}
template <class C, class V> BRAID_INLINE Lane<V> join_lanes(Row<V> row) {
  for (int half = Row<V>::kVectors / 2; half > 0; half /= 2)
    for (int c = 0; c < half; ++c) row.v[c] = C::join(row.v[c], row.v[c + half]);
  return join_lanes<C>(row.v[0]);
}

/// Reduces n > 0 elements of a source to one number.
template <class C, class V, class S> BRAID_INLINE Lane<V> reduce_all(S& source, std::int64_t n) {
  return join_lanes<C>(reduce_rows<C, V>(source, 0, n));
}

/// Elements of a tile when threads share one long reduction: a power of two, with at most 64 tiles.
/// The result does not depend on it.
constexpr std::int64_t kSharedTile = 16 * 1024;
constexpr int kMaxSharedTiles = 64;
BRAID_INLINE std::int64_t shared_tile(std::int64_t n) {
  std::int64_t tile = kSharedTile;
  while (tile * kMaxSharedTiles < n) tile *= 2;
  return tile;
}

/// reduce_all for any n > 0, shared by threads if it is long. source_of() makes a source for each
/// tile.
template <class C, class V, class M>
Lane<V> reduce_shared(std::int64_t n, Stream& stream, M source_of) {
  const std::int64_t shared = shared_tile(n);
  if (n <= shared) {
    auto source = source_of();
    return reduce_all<C, V>(source, n);
  }
  Row<V> part[kMaxSharedTiles];
  const std::int64_t tiles = (n + shared - 1) / shared;
  const auto tile = [&](std::int64_t t) {
    auto source = source_of();
    part[t] =
        reduce_rows<C, V>(source, t * shared, n - t * shared < shared ? n - t * shared : shared);
  };
  parallel_for(stream, tiles, tile);
  Cascade<C, Row<V>> cascade;
  for (std::int64_t t = 0; t < tiles; ++t) cascade.push(part[t], 0);
  return join_lanes<C>(cascade.finish());
}

/// Calls f(row) for rows of n elements each, with several rows per tile if they are short. One
/// thread runs each f.
template <class F> void for_rows(std::int64_t rows, std::int64_t n, Stream& stream, F f) {
  const std::int64_t group = n >= kSharedTile ? 1 : kSharedTile / (n > 0 ? n : 1);
  const auto tile = [&](std::int64_t t) {
    const std::int64_t end = (t + 1) * group < rows ? (t + 1) * group : rows;
    for (std::int64_t row = t * group; row < end; ++row) f(row);
  };
  if (rows <= group) tile(0);
  else parallel_for(stream, (rows + group - 1) / group, tile);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
