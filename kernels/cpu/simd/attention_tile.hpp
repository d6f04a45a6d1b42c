#pragma once
#include <braid/core/internal/kernel_args/attention.hpp>

#include "cpu/runtime/scratch.hpp"
#include "cpu/simd/dropout_factors.hpp"
#include "cpu/simd/gemm_micro.hpp"
#include "cpu/simd/gemm_pack.hpp"
#include "cpu/simd/math.hpp"

// A tile of attention: 64 queries by 64 keys, whose scores stay in the L1 cache. The products use
// gemm_micro.hpp.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kSide = 64;

template <class V> constexpr std::int64_t kWide = sizeof(V) / sizeof(Lane<V>);

template <class V> BRAID_INLINE V minus_infinity() {
  return splat<V>(-static_cast<Lane<V>>(__builtin_inff()));
}
/// Adds the lanes of v as a tree.
template <class V> BRAID_INLINE Lane<V> sum_of_lanes(V v) {
  Lane<V> x[kWide<V>];
  __builtin_memcpy(x, &v, sizeof v);
  for (std::int64_t half = kWide<V> / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) x[i] += x[i + half];
  return x[0];
}
template <class V> BRAID_INLINE Lane<V> max_of_lanes(V v) {
  Lane<V> x[kWide<V>];
  __builtin_memcpy(x, &v, sizeof v);
  for (std::int64_t half = kWide<V> / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) x[i] = x[i + half] > x[i] ? x[i + half] : x[i];
  return x[0];
}

/// One head of an operand.
template <class E> struct HeadOf {
  typename E::T* at;
  std::int64_t row;
};
template <class E>
BRAID_INLINE HeadOf<E> head_of(const AttentionOperand& operand, std::int64_t b, std::int64_t h) {
  return {static_cast<typename E::T*>(operand.data) + b * operand.batch + h * operand.head,
          operand.row};
}

/// Rows of a head as computed numbers: in place, or, for 16-bit types, widened into `copy`.
template <class A> struct Rows {
  const A* at;
  std::int64_t row;
};
template <class E>
BRAID_INLINE Rows<Computed<E>> rows_of(const HeadOf<E>& head, std::int64_t first, std::int64_t rows,
                                       std::int64_t width, [[maybe_unused]] Computed<E>* copy) {
  if constexpr (std::is_same_v<typename E::T, Computed<E>>) {
    return {head.at + first * head.row, head.row};
  } else {
    copy_rows<E>(head.at + first * head.row, head.row, rows, width, copy, width);
    return {copy, width};
  }
}
/// Returns `size` if rows_of widens, else 0.
template <class E> constexpr std::int64_t copied(std::int64_t size) {
  return std::is_same_v<typename E::T, Computed<E>> ? 0 : size;
}

/// Writes a matrix of computed numbers to rows of E.
template <class E>
BRAID_INLINE void write_rows(const Computed<E>* from, std::int64_t from_row, std::int64_t rows,
                             std::int64_t width, const HeadOf<E>& head, std::int64_t first) {
  using V = typename E::V;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Computed<E>* a = from + i * from_row;
    typename E::T* to = head.at + (first + i) * head.row;
    std::int64_t j = 0;
    for (; j + E::kLanes <= width; j += E::kLanes) E::store(to + j, load<V>(a + j));
    if (const int k = static_cast<int>(width - j); k > 0)
      E::store_first(to + j, load_first<V>(a + j, k), k);
  }
}

/// Rows [i, i + rows) of the queries and [j, j + columns) of the keys of one head.
struct Tile {
  std::int64_t b, h, i, j, rows, columns;
};

/// scores[r][c] = q kᵀ.
template <class A>
BRAID_INLINE void multiply_tile(const Tile& tile, std::int64_t width, const Rows<A>& q,
                                const A* turned, A* scores) {
  multiply(Product<A>{tile.rows, tile.columns, width, q.at, q.row, 1, turned, kSide, scores, kSide,
                      nullptr, false});
}

/// Scales and masks a row of kSide scores; those that the query does not see become -inf.
template <class E>
BRAID_INLINE void finish_scores(const AttentionArgs& args, const Tile& tile, std::int64_t r,
                                Computed<E>* scores) {
  using V = typename E::V;
  using A = Computed<E>;
  constexpr A none = -static_cast<A>(__builtin_inff());
  const std::int64_t seen = args.causal && tile.i + r - tile.j + 1 < tile.columns
                                ? (tile.i + r - tile.j + 1 > 0 ? tile.i + r - tile.j + 1 : 0)
                                : tile.columns;
  const V scale = splat<V>(static_cast<A>(args.scale));
  for (std::int64_t c = 0; c < kSide; c += kWide<V>) store(scores + c, load<V>(scores + c) * scale);
  for (std::int64_t c = seen; c < kSide; ++c) scores[c] = none;
  if (args.mask.data == nullptr) return;
  const AttentionMask& m = args.mask;
  const std::int64_t at =
      tile.b * m.batch + tile.h * m.head + (tile.i + r) * m.row + tile.j * m.column;
  if (m.is_bool) {
    const auto* sees = static_cast<const std::uint8_t*>(m.data) + at;
    for (std::int64_t c = 0; c < seen; ++c) scores[c] = sees[c * m.column] != 0 ? scores[c] : none;
  } else {
    const auto* added = static_cast<const typename E::T*>(m.data) + at;
    for (std::int64_t c = 0; c < seen; ++c) {
      if constexpr (std::is_same_v<typename E::T, A>) scores[c] += added[c * m.column];
      else scores[c] += E::to_float(added[c * m.column]);
    }
  }
}

/// Computes the kSide dropout factors for the probabilities of row r of a tile.
template <class A>
BRAID_INLINE void drop_factors(const AttentionArgs& args, const Tile& tile, std::int64_t r,
                               A* factor) {
  const DropFactors<A> make{args.seed, args.stream, args.threshold,
                            static_cast<A>(args.drop_scale)};
  const std::int64_t row =
      (args.first_head + tile.b * args.heads + tile.h) * args.queries + tile.i + r;
  for (std::int64_t c = tile.columns; c < kSide; ++c) factor[c] = A{};
  make(factor, static_cast<std::uint64_t>(row * args.keys + tile.j), tile.columns);
}

BRAID_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
