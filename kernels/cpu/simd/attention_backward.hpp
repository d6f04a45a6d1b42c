#pragma once
#include "cpu/simd/attention_tile.hpp"

// The gradients of attention for one head of keys and the query heads that use it. For each query
// head and each tile of keys it iterates over all queries, and recomputes the probabilities from
// the saved lse.
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

/// Scratch memory of one thread. For 16-bit types the copies hold one query head, and the gradients
/// of a tile of keys, or of all keys where several query heads add to them.
template <class A> struct BackwardScratch {
  A *scores, *dp, *k_turned, *v_turned, *dots, *q, *dout, *dq, *k, *dk, *dv;
};
template <class E>
BackwardScratch<Computed<E>> backward_scratch(const AttentionArgs& args, const SequenceRows& s) {
  using A = Computed<E>;
  const std::int64_t width = args.width, value_width = args.value_width, queries = s.queries,
                     summed_keys = args.group > 1 ? s.keys : kSide;
  const std::int64_t sizes[] = {kSide * kSide,
                                kSide * kSide,
                                kSide * width,
                                kSide * value_width,
                                (queries + 15) / 16 * 16,
                                copied<E>(queries * width),
                                copied<E>(queries * value_width),
                                copied<E>(queries * width),
                                copied<E>(kSide * width),
                                copied<E>(summed_keys * width),
                                copied<E>(summed_keys * value_width)};
  std::int64_t sum = 0;
  for (const std::int64_t n : sizes) sum += n;
  A* at = static_cast<A*>(scratch(static_cast<std::size_t>(sum) * sizeof(A)));
  auto next = [&, i = 0]() mutable {
    A* const here = at;
    at += sizes[i++];
    return here;
  };
  // the elements of a braced list are evaluated in order
  return {next(), next(), next(), next(), next(), next(), next(), next(), next(), next(), next()};
}

/// Computes dq of query head h, and adds to dk and dv of its key head. The first query head of a
/// group sets them, the last one writes those of 16-bit types.
template <class E>
void attention_backward_of_head(const AttentionBackwardArgs& all, const SequenceRows& s,
                                std::int64_t h, const BackwardScratch<Computed<E>>& to) {
  using V = typename E::V;
  using A = Computed<E>;
  const AttentionArgs& args = all.forward;
  const std::int64_t width = args.width, value_width = args.value_width, queries = s.queries,
                     key_head = h / args.group;
  const bool is_first = h % args.group == 0;
  [[maybe_unused]] const bool is_last = (h + 1) % args.group == 0;
  const HeadOf<E> k = of_keys<E>(args.k, s, key_head), v = of_keys<E>(args.v, s, key_head),
                  out = of_queries<E>(args.out, s, h);
  const HeadOf<E> dq_head = of_queries<E>(all.dq, s, h), dk_head = of_keys<E>(all.dk, s, key_head),
                  dv_head = of_keys<E>(all.dv, s, key_head);
  const Rows<A> q = rows_of<E>(of_queries<E>(args.q, s, h), 0, queries, width, to.q);
  const Rows<A> dout = rows_of<E>(of_queries<E>(all.dout, s, h), 0, queries, value_width, to.dout);
  const Summed<E> dq = summed<E>(dq_head, 0, width, to.dq);
  const A* const lse = lse_of<A>(args, s, h);
  for (std::int64_t i = 0; i < queries; ++i) {
    V sum{};
    const A* g = dout.at + i * dout.row;
    const typename E::T* o = out.at + i * out.row;
    std::int64_t c = 0;
    for (; c + E::kLanes <= value_width; c += E::kLanes) sum += load<V>(g + c) * E::load(o + c);
    if (const int n = static_cast<int>(value_width - c); n > 0)
      sum += load_first<V>(g + c, n) * E::load_first(o + c, n);
    to.dots[i] = sum_of_lanes(sum);
  }
  // the first of the tiles of queries that see key j
  const auto first_seeing = [&](std::int64_t j) {
    return args.causal && j > s.past ? (j - s.past) / kSide * kSide : 0;
  };
  const std::int64_t unseeing = s.keys > 0 ? smaller(first_seeing(0), queries) : queries;
  for (std::int64_t i = 0; i < unseeing; ++i)
    for (std::int64_t c = 0; c < width; ++c) dq.at[i * dq.row + c] = A{};
  for (std::int64_t j = 0; j < s.keys; j += kSide) {
    const std::int64_t columns = smaller(s.keys - j, kSide), copy = args.group > 1 ? j : 0;
    transpose_rows<E>(k.at + j * k.row, k.row, columns, width, to.k_turned, kSide);
    transpose_rows<E>(v.at + j * v.row, v.row, columns, value_width, to.v_turned, kSide);
    const Rows<A> k_rows = rows_of<E>(k, j, columns, width, to.k);
    const Summed<E> dk = summed<E>(dk_head, j, width, to.dk + copy * width),
                    dv = summed<E>(dv_head, j, value_width, to.dv + copy * value_width);
    const std::int64_t from = first_seeing(j);
    for (std::int64_t i = from; i < queries; i += kSide) {
      const Tile tile{s, h, i, j, smaller(queries - i, kSide), columns};
      const A* const q_rows = q.at + i * q.row;
      const A* const dout_rows = dout.at + i * dout.row;
      multiply_tile(tile, width, Rows<A>{q_rows, q.row}, to.k_turned, to.scores);
      multiply_tile(tile, value_width, Rows<A>{dout_rows, dout.row}, to.v_turned, to.dp);
      for (std::int64_t r = 0; r < tile.rows; ++r)
        gradient_row<E>(args, tile, r, lse[i + r], to.dots[i + r], to.scores + r * kSide,
                        to.dp + r * kSide);
      const bool adds = !is_first || i > from;
      multiply(Product<A>{columns, value_width, tile.rows, to.scores, 1, kSide, dout_rows, dout.row,
                          dv.at, dv.row, nullptr, adds});
      multiply(Product<A>{columns, width, tile.rows, to.dp, 1, kSide, q_rows, q.row, dk.at, dk.row,
                          nullptr, adds});
      multiply(Product<A>{tile.rows, width, columns, to.dp, kSide, 1, k_rows.at, k_rows.row,
                          dq.at + i * dq.row, dq.row, nullptr, j > 0});
    }
    if (from >= queries && is_first) {  // no query sees these keys
      for (std::int64_t r = 0; r < columns; ++r) {
        for (std::int64_t c = 0; c < width; ++c) dk.at[r * dk.row + c] = A{};
        for (std::int64_t c = 0; c < value_width; ++c) dv.at[r * dv.row + c] = A{};
      }
    }
    if constexpr (!std::is_same_v<typename E::T, A>) {
      if (is_last) {
        write_rows<E>(dk.at, dk.row, columns, width, dk_head, j);
        write_rows<E>(dv.at, dv.row, columns, value_width, dv_head, j);
      }
    }
  }
  if constexpr (!std::is_same_v<typename E::T, A>)
    write_rows<E>(dq.at, dq.row, queries, width, dq_head, 0);
}

/// Computes the gradients of one key head and of the query heads that use it, in their order.
template <class E>
void attention_backward_of_group(const AttentionBackwardArgs& all, std::int64_t b,
                                 std::int64_t key_head) {
  const std::int64_t group = all.forward.group;
  const SequenceRows s = sequence_of(all.forward, b);
  const BackwardScratch<Computed<E>> to = backward_scratch<E>(all.forward, s);
  for (std::int64_t g = 0; g < group; ++g)
    attention_backward_of_head<E>(all, s, key_head * group + g, to);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
