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
template <class E>
BRAID_DEVICE typename E::A score_of(const AttentionArgs& args, std::int64_t b, std::int64_t h,
                                    std::int64_t query, std::int64_t key, typename E::A product) {
  using A = typename E::A;
  if (query >= args.queries || key >= args.keys || (args.causal && key > query)) return lowest<A>();
  const A score = product * static_cast<A>(args.scale);
  const AttentionMask& m = args.mask;
  if (m.data == nullptr) return score;
  const std::int64_t at = b * m.batch + h * m.head + query * m.row + key * m.column;
  if (m.is_bool) return static_cast<const std::uint8_t*>(m.data)[at] != 0 ? score : lowest<A>();
  return score + E::load(static_cast<const typename E::T*>(m.data)[at]);
}

/// The dropout factor of a probability.
template <class A>
BRAID_DEVICE A drop_factor(const AttentionArgs& args, std::int64_t b, std::int64_t h,
                           std::int64_t query, std::int64_t key) {
  if (args.threshold == 0) return A(1);
  const std::int64_t e =
      ((args.first_head + b * args.heads + h) * args.queries + query) * args.keys + key;
  const RandomOf random(args.seed, args.stream, args.shift);
  return DropKey{random.seed, random.stream, args.threshold}.keeps_element(
             static_cast<std::uint64_t>(e))
             ? static_cast<A>(args.drop_scale)
             : A(0);
}

}  // namespace braid::cuda
