#pragma once
#include <braid/core/internal/kernel_args/attention.hpp>

#include "cuda/device/dropout.cuh"
#include "cuda/device/group.cuh"
#include "cuda/device/math.cuh"

// Tiles of attention: 32 rows by 32 columns of scores for a block of 8 warps. Warp w has rows 4 w
// to 4 w + 3, lane l has column l, so a row's maximum and sum are computed within a warp. Products
// load 32 elements of the width into shared memory at a time, so any width fits.
namespace braid::cuda {

inline constexpr int kSide = 32;
inline constexpr int kRowsOfWarp = kSide / kWarps;
inline constexpr int kPitch = kSide + 4;  // row length of `left`; packs of 4 stay aligned
inline constexpr int kChunks = 4;         // of 32 result columns per thread
static_assert(kRowsOfWarp == 4);

/// Shared memory of a block: two operands of a product, and the scores that weight the rows of an
/// operand.
template <class A> struct AttentionShared {
  Pack<A, 4> left[kSide * kPitch / 4];  // [element][row]
  A right[kSide][kSide + 1];            // [column][element], or [row][column]
  Pack<A, 4> scores[kWarps][kSide];     // [warp][column] of four rows
};

/// Rows [first, first + count) of one head of an operand; other rows read as zeros.
template <class E> struct HeadRows {
  const typename E::T* head;
  std::int64_t row, first;
  int count;
  BRAID_DEVICE typename E::A at(int r, int c, int width) const {
    return r < count && c < width ? E::load(head[(first + r) * row + c]) : typename E::A(0);
  }
};
template <class E>
BRAID_DEVICE HeadRows<E> rows_of(const AttentionOperand& operand, std::int64_t b, std::int64_t h,
                                 std::int64_t first, std::int64_t rows) {
  const std::int64_t left = rows - first;
  return {static_cast<const typename E::T*>(operand.data) + b * operand.batch + h * operand.head,
          operand.row, first, left < kSide ? static_cast<int>(left) : kSide};
}

/// The most queries and keys of sequences of several lengths: the rows of a tile after them have
/// numbers of 32 bits too.
inline constexpr std::int64_t kMostRows = INT32_MAX - 256;

/// The rows of one sequence. Where all have one length, these are parameters and constants, which
/// take no registers.
template <bool varlen> class SequenceRows {
 public:
  static constexpr bool kVarlen = false;
  using Index = std::int64_t;
  BRAID_DEVICE SequenceRows(const AttentionArgs& args, std::int64_t /*b*/) : args_(args) {}
  // among the rows of the operands
  BRAID_DEVICE Index first_query() const { return 0; }
  BRAID_DEVICE Index first_key() const { return 0; }
  BRAID_DEVICE Index queries() const { return args_.queries; }
  BRAID_DEVICE Index keys() const { return args_.keys; }
  /// If causal, query i sees the keys 0 … i + past.
  BRAID_DEVICE Index past() const { return 0; }

 private:
  const AttentionArgs& args_;
};
/// Of several lengths. Numbers of 32 bits leave registers to the loops.
template <> class SequenceRows<true> {
 public:
  static constexpr bool kVarlen = true;
  using Index = int;
  BRAID_DEVICE SequenceRows(const AttentionArgs& args, std::int64_t b)
      : first_query_(args.sequences.q_starts[b]),
        first_key_(args.sequences.k_starts[b]),
        queries_(at_most(args.sequences.q_starts[b + 1] - first_query_, args.queries)),
        keys_(at_most(args.sequences.k_starts[b + 1] - first_key_, args.keys)) {}
  BRAID_DEVICE Index first_query() const { return first_query_; }
  BRAID_DEVICE Index first_key() const { return first_key_; }
  BRAID_DEVICE Index queries() const { return queries_; }
  BRAID_DEVICE Index keys() const { return keys_; }
  BRAID_DEVICE Index past() const { return keys_ - queries_; }

 private:
  static BRAID_DEVICE int at_most(int rows, std::int64_t most) {
    return rows < most ? rows : static_cast<int>(most);
  }
  int first_query_, first_key_, queries_, keys_;
};

/// The number of keys that queries before `end` see.
template <class S>
BRAID_DEVICE typename S::Index keys_before(const AttentionArgs& args, const S& s,
                                           typename S::Index end) {
  return args.causal && end + s.past() < s.keys() ? end + s.past() : s.keys();
}
/// The first query that sees key `key`, rounded down to a multiple of Tile.
template <int Tile, class S>
BRAID_DEVICE typename S::Index first_seeing(const AttentionArgs& args, const S& s,
                                            typename S::Index key) {
  return args.causal && key > s.past() ? (key - s.past()) / Tile * Tile : 0;
}
/// The place of a sequence's first query in lse and in the sums of the backward.
template <class S>
BRAID_DEVICE std::int64_t first_term(const AttentionArgs& args, const S& s, std::int64_t b,
                                     std::int64_t h) {
  return S::kVarlen ? h * args.sequences.q_rows + s.first_query()
                    : (b * args.heads + h) * args.queries;
}

/// sum[r] = row 4 warp + r of `a` times row `lane` of `b`.
template <class E>
BRAID_DEVICE void multiply_rows(AttentionShared<typename E::A>& shared, const HeadRows<E>& a,
                                const HeadRows<E>& b, int width,
                                typename E::A (&sum)[kRowsOfWarp]) {
  using A = typename E::A;
  const int lane = lane_of_thread(), warp = warp_of_thread();
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) sum[r] = A(0);
  for (int from = 0; from < width; from += kSide) {
    __syncthreads();  // all threads have read the previous operands
    Pack<A, 4> rows;
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      rows.v[r] = a.at(kRowsOfWarp * warp + r, from + lane, width);
      shared.right[kRowsOfWarp * warp + r][lane] = b.at(kRowsOfWarp * warp + r, from + lane, width);
    }
    shared.left[lane * (kPitch / 4) + warp] = rows;
    __syncthreads();
#pragma unroll 8
    for (int e = 0; e < kSide; ++e) {
      const Pack<A, 4> four = shared.left[e * (kPitch / 4) + warp];
      const A x = shared.right[lane][e];
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) sum[r] += four.v[r] * x;
    }
  }
}

/// sum[c][r] += Σ_j shared.scores of row 4 warp + r and column j, times row j of `b` at 32 c +
/// lane. Each warp wrote its own scores.
template <class E>
BRAID_DEVICE void add_weighted(AttentionShared<typename E::A>& shared, const HeadRows<E>& b,
                               int width, typename E::A (&sum)[kChunks][kRowsOfWarp]) {
  using A = typename E::A;
  const int lane = lane_of_thread(), warp = warp_of_thread();
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (c * kSide >= width) continue;
    __syncthreads();  // all threads have read the previous operand; this warp's scores are written
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r)
      shared.right[kRowsOfWarp * warp + r][lane] =
          b.at(kRowsOfWarp * warp + r, c * kSide + lane, width);
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < kSide; ++j) {
      const Pack<A, 4> four = shared.scores[warp][j];
      const A x = shared.right[j][lane];
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) sum[c][r] += four.v[r] * x;
    }
  }
}

/// Writes sum * factor[r] to the rows of a head.
template <class E>
BRAID_DEVICE void store_rows(const AttentionOperand& operand, std::int64_t b, std::int64_t h,
                             std::int64_t first, std::int64_t rows, std::int64_t width,
                             const typename E::A (&sum)[kChunks][kRowsOfWarp],
                             const typename E::A (&factor)[kRowsOfWarp]) {
  const int lane = lane_of_thread(), warp = warp_of_thread();
  typename E::T* const head =
      static_cast<typename E::T*>(operand.data) + b * operand.batch + h * operand.head;
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const std::int64_t row = first + kRowsOfWarp * warp + r;
    if (row >= rows) continue;
#pragma unroll
    for (int c = 0; c < kChunks; ++c)
      if (c * kSide + lane < width)
        head[row * operand.row + c * kSide + lane] = E::store(sum[c][r] * factor[r]);
  }
}

/// The score of a query and a key from their product: scaled and masked; -inf if the query does not
/// see the key or either does not exist.
template <class E, class S>
BRAID_DEVICE typename E::A score_of(const AttentionArgs& args, const S& s, std::int64_t b,
                                    std::int64_t h, typename S::Index query, typename S::Index key,
                                    typename E::A product) {
  using A = typename E::A;
  if (query >= s.queries() || key >= s.keys() || (args.causal && key > query + s.past()))
    return lowest<A>();
  const A score = product * static_cast<A>(args.scale);
  const AttentionMask& m = args.mask;
  if (S::kVarlen || m.data == nullptr) return score;
  const std::int64_t at = b * m.batch + h * m.head + query * m.row + key * m.column;
  if (m.is_bool) return static_cast<const std::uint8_t*>(m.data)[at] != 0 ? score : lowest<A>();
  return score + E::load(static_cast<const typename E::T*>(m.data)[at]);
}

/// The dropout factor of a probability.
template <class A, class S>
BRAID_DEVICE A drop_factor(const AttentionArgs& args, const S& s, std::int64_t b, std::int64_t h,
                           typename S::Index query, typename S::Index key) {
  if (args.threshold == 0) return A(1);
  const std::int64_t row = S::kVarlen
                               ? args.first_head + (s.first_query() + query) * args.heads + h
                               : (args.first_head + b * args.heads + h) * args.queries + query,
                     e = row * args.keys + key;
  const RandomOf random(args.seed, args.stream, args.shift);
  return DropKey{random.seed, random.stream, args.threshold}.keeps_element(
             static_cast<std::uint64_t>(e))
             ? static_cast<A>(args.drop_scale)
             : A(0);
}

}  // namespace braid::cuda
