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

/// The rows of one sequence.
struct SequenceRows {
  std::int64_t b;
  std::int64_t first_query, first_key;  // among the rows of the operands
  std::int64_t queries, keys;
  std::int64_t past;  // if causal, query i sees the keys 0 … i + past
};
BRAID_INLINE SequenceRows sequence_of(const AttentionArgs& args, std::int64_t b) {
  const AttentionSequences& all = args.sequences;
  if (all.q_starts == nullptr) return {b, 0, 0, args.queries, args.keys, 0};
  const std::int64_t q = all.q_starts[b], k = all.k_starts[b], queries = all.q_starts[b + 1] - q,
                     keys = all.k_starts[b + 1] - k;
  return {b, q, k, queries, keys, keys - queries};
}
/// The log-sum-exps of a head's queries.
template <class A>
BRAID_INLINE A* lse_of(const AttentionArgs& args, const SequenceRows& s, std::int64_t h) {
  return static_cast<A*>(args.lse) + (args.sequences.q_starts == nullptr
                                          ? (s.b * args.heads + h) * args.queries
                                          : h * args.sequences.q_rows + s.first_query);
}

/// One head of a sequence's rows, which begin at row `first` of the operand.
template <class E> struct HeadOf {
  typename E::T* at;
  std::int64_t row;
};
template <class E>
BRAID_INLINE HeadOf<E> head_of(const AttentionOperand& operand, std::int64_t b, std::int64_t h,
                               std::int64_t first) {
  return {static_cast<typename E::T*>(operand.data) + b * operand.batch + h * operand.head +
              first * operand.row,
          operand.row};
}
template <class E>
BRAID_INLINE HeadOf<E> of_queries(const AttentionOperand& operand, const SequenceRows& s,
                                  std::int64_t h) {
  return head_of<E>(operand, s.b, h, s.first_query);
}
template <class E>
BRAID_INLINE HeadOf<E> of_keys(const AttentionOperand& operand, const SequenceRows& s,
                               std::int64_t h) {
  return head_of<E>(operand, s.b, h, s.first_key);
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

/// Rows [i, i + rows) of the queries and [j, j + columns) of the keys of one head of a sequence.
struct Tile {
  const SequenceRows& s;
  std::int64_t h, i, j, rows, columns;
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
  std::int64_t seen = tile.columns;
  if (args.causal) {
    const std::int64_t end = tile.i + r + tile.s.past + 1 - tile.j;
    seen = end < seen ? (end > 0 ? end : 0) : seen;
  }
  const V scale = splat<V>(static_cast<A>(args.scale));
  for (std::int64_t c = 0; c < kSide; c += kWide<V>) store(scores + c, load<V>(scores + c) * scale);
  for (std::int64_t c = seen; c < kSide; ++c) scores[c] = none;
  if (args.mask.data == nullptr) return;
  const AttentionMask& m = args.mask;
  const std::int64_t at =
      tile.s.b * m.batch + tile.h * m.head + (tile.i + r) * m.row + tile.j * m.column;
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
  const std::int64_t query = tile.i + r,
                     row =
                         args.sequences.q_starts == nullptr
                             ? (args.first_head + tile.s.b * args.heads + tile.h) * args.queries +
                                   query
                             : args.first_head + (tile.s.first_query + query) * args.heads + tile.h;
  for (std::int64_t c = tile.columns; c < kSide; ++c) factor[c] = A{};
  make(factor, static_cast<std::uint64_t>(row * args.keys + tile.j), tile.columns);
}

BRAID_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
