#include "cuda/attention_mma.hpp"

#include "cuda/device/attention_mma.cuh"
#include "cuda/errors.hpp"

// The forward of attention on tensor cores: a block has 64 queries and loops over tiles of keys and
// values with a running maximum and sum. Two tiles are in shared memory: one is multiplied while
// cp.async copies the next.
namespace braid::cuda {

/// Keys of a tile; half as many where a result row needs twice the registers. Masks, dropout and
/// alignment do not change it, and so no bit of a result.
template <int Width> inline constexpr int kKeysOfTile = Width > 128 ? 32 : 64;

/// Which operands have rows that are aligned to 16 bytes.
struct AttentionPacks {
  bool q, k, v;
};

/// simple: all operands are aligned, there is no mask and no dropout, and the scale is above 0.
/// varlen: sequences have several lengths.
template <class E, int Width, bool simple, bool varlen>
__global__ void __launch_bounds__(128, Width > 128                         ? 1
                                       : Width > 64 || (varlen && !simple) ? 2
                                                                           : 3)
    attention_forward_mma(AttentionArgs args, AttentionPacks packs, std::int64_t tiles) {
  using T = typename E::T;
  constexpr int kKeys = kKeysOfTile<Width>, kQueries = 64, columns = kKeys / 8;
  using Queries = HeadTile<E, kQueries, Width, simple>;
  using Keys = HeadTile<E, kKeys, Width, simple>;
  SIMT_DYN_SHARED(T, shared);
  T *const q = shared, *const k = q + kQueries * Width, *const v = k + 2 * kKeys * Width;
  const int warp = warp_of_thread(), lane = lane_of_thread();
  // the last queries of a head first: with causal they see the most keys
  const std::int64_t head = blockIdx.x / tiles, b = head / args.heads, h = head % args.heads;
  const SequenceRows<varlen> s(args, b);
  using Index = typename SequenceRows<varlen>::Index;
  const Index first = static_cast<Index>(tiles - 1 - blockIdx.x % tiles) * kQueries,
              end_of_keys = s.first_key() + s.keys(),
              end_of_queries = s.first_query() + s.queries();
  if (varlen && first >= s.queries()) return;
  const int steps = static_cast<int>((keys_before(args, s, first + kQueries) + kKeys - 1) / kKeys);
  const std::int64_t key_head = h / args.group;
  typename Keys::Loader keys(args.k, b, key_head, s.first_key(), end_of_keys),
      values(args.v, b, key_head, s.first_key(), end_of_keys);
  const auto load = [&](int step) {
    if (step < steps) {
      const int stage = step % 2 * (kKeys * Width);
      keys.load(k + stage, args.k, packs.k, args.width);
      values.load(v + stage, args.v, packs.v, args.value_width);
    }
    simt::cp_async_commit();
  };
  if (steps > 0)  // what is copied must be waited for
    typename Queries::Loader(args.q, b, h, s.first_query() + first, end_of_queries)
        .load(q, args.q, packs.q, args.width);
  load(0);

  const float unit = unit_of<simple>(args);
  float max[2] = {lowest<float>(), lowest<float>()}, sum[2] = {}, out[Width / 8][4] = {};
  for (int step = 0; step < steps; ++step) {
    simt::cp_async_wait<0>();
    __syncthreads();  // this tile has arrived, and the memory of the tile before it is free
    load(step + 1);
    const Index key = static_cast<Index>(step) * kKeys;
    const int stage = step % 2 * (kKeys * Width);
    float score[columns][4];
    multiply_rows_mma<E, typename Queries::By, typename Keys::By>(score, q, warp * 16, k + stage,
                                                                  Width);
    finish_scores<simple, false, E>(args, s, b, h, first + warp * 16, key, score);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float above = max[r];
#pragma unroll
      for (int n = 0; n < columns; ++n)
        above = MaxOfNumbers<float>{}.join(MaxOfNumbers<float>{}.join(above, score[n][2 * r]),
                                           score[n][2 * r + 1]);
      above = join_quad(MaxOfNumbers<float>{}, above);
      // Rounded before the difference, as base is: of an unchanged maximum `keep` is 1.
      const float base = above == lowest<float>() ? 0.0f : multiply(above, unit),
                  keep = simt::exp2_approx(multiply(max[r], unit) - base);
      max[r] = above;
      float here = 0;
#pragma unroll
      for (int n = 0; n < columns; ++n)
#pragma unroll
        for (int c = 2 * r; c < 2 * r + 2; ++c)
          score[n][c] = simt::exp2_approx(score[n][c] * unit - base), here += score[n][c];
      sum[r] = sum[r] * keep + here;
#pragma unroll
      for (int n = 0; n < Width / 8; ++n) out[n][2 * r] *= keep, out[n][2 * r + 1] *= keep;
    }
    if (!simple && args.threshold != 0) {
#pragma unroll
      for (int n = 0; n < columns; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          score[n][c] *= drop_factor<float>(args, s, b, h, first + warp * 16 + row_of_element(c),
                                            key + column_of_element(n, c));
    }
    add_weighted_mma<E, typename Keys::Across>(out, score, v + stage);
  }
  float factor[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float all = join_quad(Sum<float>{}, sum[r]);
    factor[r] = all == 0 ? 0.0f : 1 / all;
    const Index query = first + warp * 16 + row_of_element(2 * r);
    if (lane % 4 == 0 && query < s.queries())
      static_cast<float*>(args.lse)[first_term(args, s, b, h) + query] =
          all == 0 ? lowest<float>() : max[r] * (unit * kLogOf2) + log_of(all);
  }
  // This warp's queries are read by no other warp: its results take their place.
  store_head_rows<E, Width>(args.out, b, h, std::int64_t{s.first_query()} + first + warp * 16,
                            end_of_queries, args.value_width, out, factor, q + warp * 16 * Width);
}

void attention_mma(const AttentionArgs& args, Stream& stream) {
  (void)with_floating(args.dtype, [&]<class E>() {
    if constexpr (sizeof(typename E::T) == 2) {
      using T = typename E::T;
      const std::int64_t tiles = (args.queries + 63) / 64, blocks = args.batch * args.heads * tiles;
      if (blocks > INT32_MAX) fail_size("attention", "fewer than 2^31 tiles of 64 queries", blocks);
      const AttentionPacks packs{has_aligned_rows<T>(args.q, args),
                                 has_aligned_rows<T>(args.k, args),
                                 has_aligned_rows<T>(args.v, args)};
      const bool simple = packs.q && packs.k && packs.v && args.mask.data == nullptr &&
                          args.threshold == 0 && keeps_order(args);
      with_head(args, simple, [&]<int Width, bool Simple, bool varlen>() {
        constexpr std::size_t bytes = (64 + 4 * kKeysOfTile<Width>)*Width * sizeof(T);
        run_with(bytes, "attention", attention_forward_mma<E, Width, Simple, varlen>,
                 static_cast<unsigned>(blocks), 128, stream, args, packs, tiles);
      });
    }
  });
}

}  // namespace braid::cuda
