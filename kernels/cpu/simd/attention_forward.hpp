#pragma once
#include "cpu/simd/attention_tile.hpp"

// Attention of 64 queries. It iterates over tiles of keys with a running maximum (Dao et al. 2022,
// arXiv:2205.14135; Milakov and Gimelshein 2018).
namespace braid::cpu::BRAID_ISA {
namespace {

/// The state of each query so far: its largest score and Σ exp(score - largest).
template <class A> struct RunningRows {
  A max[kSide], sum[kSide];
};

/// Converts the scores of one row to probabilities relative to the running maximum. Returns the
/// factor by which the row's earlier sums must be multiplied.
template <class E>
BRAID_INLINE Computed<E> take_row(const AttentionArgs& args, const Tile& tile, std::int64_t r,
                                  Computed<E>* scores, RunningRows<Computed<E>>& known) {
  using V = typename E::V;
  using A = Computed<E>;
  finish_scores<E>(args, tile, r, scores);
  V top = minus_infinity<V>();
  for (std::int64_t c = 0; c < kSide; c += kWide<V>) top = max_or_second(load<V>(scores + c), top);
  const A before = known.max[r], here = max_of_lanes(top), max = here > before ? here : before;
  const bool nothing = max == minus_infinity<V>()[0];
  const V shift = splat<V>(nothing ? A{} : max);
  V sum{};
  for (std::int64_t c = 0; c < kSide; c += kWide<V>) {
    const V p = exp_nonpositive(load<V>(scores + c) - shift);
    sum += p;
    store(scores + c, p);
  }
  const A keep = nothing || before == max ? A{1} : exp_nonpositive(splat<V>(before - max))[0];
  known.max[r] = max;
  known.sum[r] = known.sum[r] * keep + sum_of_lanes(sum);
  if (args.threshold > 0) {
    alignas(64) A factor[kSide];
    drop_factors(args, tile, r, factor);
    for (std::int64_t c = 0; c < kSide; c += kWide<V>)
      store(scores + c, load<V>(scores + c) * load<V>(factor + c));
  }
  return keep;
}

template <class E>
void attention_of_queries(const AttentionArgs& args, const SequenceRows& s, std::int64_t h,
                          std::int64_t first) {
  using V = typename E::V;
  using A = Computed<E>;
  const std::int64_t width = args.width, value_width = args.value_width,
                     rows = smaller(s.queries - first, kSide);
  const std::int64_t apart = (value_width + kWide<V> - 1) / kWide<V> * kWide<V>;
  A* const scores =
      static_cast<A*>(scratch(static_cast<std::size_t>(kSide * (kSide + width + apart) +
                                                       copied<E>(kSide * (width + value_width))) *
                              sizeof(A)));
  A* const turned = scores + kSide * kSide;
  A* const sums = turned + kSide * width;
  A* const q_copy = sums + kSide * apart;
  A* const v_copy = q_copy + copied<E>(kSide * width);
  const std::int64_t key_head = h / args.group;
  const HeadOf<E> keys = of_keys<E>(args.k, s, key_head), values = of_keys<E>(args.v, s, key_head);
  const Rows<A> q = rows_of<E>(of_queries<E>(args.q, s, h), first, rows, width, q_copy);
  RunningRows<A> known;
  for (std::int64_t r = 0; r < rows; ++r) known.max[r] = minus_infinity<V>()[0], known.sum[r] = A{};
  const std::int64_t end = args.causal ? smaller(s.keys, first + rows + s.past) : s.keys;
  for (std::int64_t j = 0; j < end; j += kSide) {
    const Tile tile{s, h, first, j, rows, smaller(s.keys - j, kSide)};
    transpose_rows<E>(keys.at + j * keys.row, keys.row, tile.columns, width, turned, kSide);
    multiply_tile(tile, width, q, turned, scores);
    for (std::int64_t r = 0; r < rows; ++r) {
      const A keep = take_row<E>(args, tile, r, scores + r * kSide, known);
      if (j > 0 && keep != A{1})
        for (std::int64_t c = 0; c < apart; c += kWide<V>)
          store(sums + r * apart + c, load<V>(sums + r * apart + c) * keep);
    }
    const Rows<A> v = rows_of<E>(values, j, tile.columns, value_width, v_copy);
    multiply(Product<A>{rows, value_width, tile.columns, scores, kSide, 1, v.at, v.row, sums, apart,
                        nullptr, j > 0});
  }
  const HeadOf<E> out = of_queries<E>(args.out, s, h);
  A* const lse = lse_of<A>(args, s, h) + first;
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool nothing = known.sum[r] == A{};
    lse[r] = nothing ? minus_infinity<V>()[0] : known.max[r] + log(splat<V>(known.sum[r]))[0];
    const A factor = nothing ? A{} : A{1} / known.sum[r];
    A* const row = sums + r * apart;
    if (end <= 0)
      for (std::int64_t c = 0; c < apart; ++c) row[c] = A{};
    for (std::int64_t c = 0; c < apart; c += kWide<V>) store(row + c, load<V>(row + c) * factor);
  }
  write_rows<E>(sums, apart, rows, value_width, out, first);
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
