#pragma once
#include "cpu/simd/attention_tile.hpp"

// The gradients of attention for one head. For each tile of keys it iterates over all queries, and
// recomputes the probabilities from the saved lse.
namespace braid::cpu::BRAID_ISA {
namespace {

/// Where a gradient is accumulated: in its own rows, or, for 16-bit types, in a float copy that is
/// rounded at the end.
template <class E> struct Summed {
  Computed<E>* at;
  std::int64_t row;
};
template <class E>
BRAID_INLINE Summed<E> summed(const HeadOf<E>& head, std::int64_t first, std::int64_t width,
                              [[maybe_unused]] Computed<E>* copy) {
  if constexpr (std::is_same_v<typename E::T, Computed<E>>)
    return {head.at + first * head.row, head.row};
  else return {copy, width};
}

/// In place: scores → probabilities times dropout factors, dp → ds. For row r of one tile.
template <class E>
BRAID_INLINE void gradient_row(const AttentionArgs& args, const Tile& tile, std::int64_t r,
                               Computed<E> lse, Computed<E> dot, Computed<E>* scores,
                               Computed<E>* dp) {
  using V = typename E::V;
  using A = Computed<E>;
  finish_scores<E>(args, tile, r, scores);
  for (std::int64_t c = tile.columns; c < kSide; ++c) dp[c] = A{};
  alignas(64) A factor[kSide];
  const bool drops = args.threshold > 0, nothing = lse == minus_infinity<V>()[0];
  if (drops) drop_factors(args, tile, r, factor);
  const V l = splat<V>(lse), d = splat<V>(dot), scale = splat<V>(static_cast<A>(args.scale));
  for (std::int64_t c = 0; c < kSide; c += kWide<V>) {
    const V p = nothing ? V{} : exp(load<V>(scores + c) - l);
    const V f = drops ? load<V>(factor + c) : splat<V>(A{1});
    store(scores + c, p * f);
    store(dp + c, p * (load<V>(dp + c) * f - d) * scale);
  }
}

template <class E>
void attention_backward_of_head(const AttentionBackwardArgs& all, std::int64_t b, std::int64_t h) {
  using V = typename E::V;
  using A = Computed<E>;
  const AttentionArgs& args = all.forward;
  const std::int64_t width = args.width, value_width = args.value_width, queries = args.queries,
                     both = width + value_width;
  const std::int64_t copies = copied<E>(queries * (width + both) + 2 * kSide * both);
  A* const scores = static_cast<A*>(scratch(
      static_cast<std::size_t>(kSide * (2 * kSide + both) + (queries + 15) / 16 * 16 + copies) *
      sizeof(A)));
  A* const dp = scores + kSide * kSide;
  A* const k_turned = dp + kSide * kSide;
  A* const v_turned = k_turned + kSide * width;
  A* const dots = v_turned + kSide * value_width;
  A* const q_copy = dots + (queries + 15) / 16 * 16;
  A* const dout_copy = q_copy + copied<E>(queries * width);
  A* const dq_copy = dout_copy + copied<E>(queries * value_width);
  A* const dk_copy = dq_copy + copied<E>(queries * width);
  A* const dv_copy = dk_copy + copied<E>(kSide * width);
  A* const k_copy = dv_copy + copied<E>(kSide * value_width);
  const HeadOf<E> k = head_of<E>(args.k, b, h), v = head_of<E>(args.v, b, h),
                  out = head_of<E>(args.out, b, h);
  const HeadOf<E> dq_head = head_of<E>(all.dq, b, h), dk_head = head_of<E>(all.dk, b, h),
                  dv_head = head_of<E>(all.dv, b, h);
  const Rows<A> q = rows_of<E>(head_of<E>(args.q, b, h), 0, queries, width, q_copy);
  const Rows<A> dout = rows_of<E>(head_of<E>(all.dout, b, h), 0, queries, value_width, dout_copy);
  const Summed<E> dq = summed<E>(dq_head, 0, width, dq_copy);
  const A* const lse = static_cast<const A*>(args.lse) + (b * args.heads + h) * queries;
  for (std::int64_t i = 0; i < queries; ++i) {
    V sum{};
    const A* g = dout.at + i * dout.row;
    const typename E::T* o = out.at + i * out.row;
    std::int64_t c = 0;
    for (; c + E::kLanes <= value_width; c += E::kLanes) sum += load<V>(g + c) * E::load(o + c);
    if (const int n = static_cast<int>(value_width - c); n > 0)
      sum += load_first<V>(g + c, n) * E::load_first(o + c, n);
    dots[i] = sum_of_lanes(sum);
  }
  for (std::int64_t j = 0; j < args.keys; j += kSide) {
    const std::int64_t columns = smaller(args.keys - j, kSide);
    transpose_rows<E>(k.at + j * k.row, k.row, columns, width, k_turned, kSide);
    transpose_rows<E>(v.at + j * v.row, v.row, columns, value_width, v_turned, kSide);
    const Rows<A> k_rows = rows_of<E>(k, j, columns, width, k_copy);
    const Summed<E> dk = summed<E>(dk_head, j, width, dk_copy),
                    dv = summed<E>(dv_head, j, value_width, dv_copy);
    // earlier queries see none of these keys
    const std::int64_t from = args.causal ? j / kSide * kSide : 0;
    for (std::int64_t i = from; i < queries; i += kSide) {
      const Tile tile{b, h, i, j, smaller(queries - i, kSide), columns};
      const A* const q_rows = q.at + i * q.row;
      const A* const dout_rows = dout.at + i * dout.row;
      multiply_tile(tile, width, Rows<A>{q_rows, q.row}, k_turned, scores);
      multiply_tile(tile, value_width, Rows<A>{dout_rows, dout.row}, v_turned, dp);
      for (std::int64_t r = 0; r < tile.rows; ++r)
        gradient_row<E>(args, tile, r, lse[i + r], dots[i + r], scores + r * kSide, dp + r * kSide);
      multiply(Product<A>{columns, value_width, tile.rows, scores, 1, kSide, dout_rows, dout.row,
                          dv.at, dv.row, nullptr, i > from});
      multiply(Product<A>{columns, width, tile.rows, dp, 1, kSide, q_rows, q.row, dk.at, dk.row,
                          nullptr, i > from});
      multiply(Product<A>{tile.rows, width, columns, dp, kSide, 1, k_rows.at, k_rows.row,
                          dq.at + i * dq.row, dq.row, nullptr, j > 0});
    }
    if (from >= queries) {  // no query sees these keys
      for (std::int64_t r = 0; r < columns; ++r) {
        for (std::int64_t c = 0; c < width; ++c) dk.at[r * dk.row + c] = A{};
        for (std::int64_t c = 0; c < value_width; ++c) dv.at[r * dv.row + c] = A{};
      }
    }
    if constexpr (!std::is_same_v<typename E::T, A>) {
      write_rows<E>(dk.at, dk.row, columns, width, dk_head, j);
      write_rows<E>(dv.at, dv.row, columns, value_width, dv_head, j);
    }
  }
  if constexpr (!std::is_same_v<typename E::T, A>)
    write_rows<E>(dq.at, dq.row, queries, width, dq_head, 0);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
