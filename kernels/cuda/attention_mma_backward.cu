#include "cuda/attention_mma.hpp"
#include "cuda/attention_starts.hpp"
#include "cuda/device/attention_mma.cuh"
#include "cuda/errors.hpp"

// The backward of attention on tensor cores, in two passes without atomics. Both compute the
// probabilities again, from the saved log-sum-exp. One has 64 queries and loops over keys, for dq;
// one has 64 keys and loops over the query heads of a group and their queries, for dk and dv. Its
// scores are transposed, so that they are the left operand of the products that follow.
namespace braid::cuda {

/// Rows of the tiles that a pass loops over. Those of the widest heads fit in the 99 KiB of shared
/// memory that a block has on sm_86, sm_89 and sm_120.
template <int Width> inline constexpr int kStepsOfTile = Width > 128 ? 16 : Width > 64 ? 32 : 64;

/// What a pass over the queries computes. Of wide heads dk and dv do not fit in one thread's
/// registers together.
enum class KeyGrads { both, dk, dv };

/// Which operands have rows that are aligned to 16 bytes.
struct BackwardPacks {
  bool q, k, v, dout;
};

/// The log-sum-exp of a query in powers of 2, and its Σ out dout.
struct QueryTerms {
  float lse, dot;
};
template <class S>
BRAID_DEVICE QueryTerms terms_of(const AttentionArgs& f, const S& s, const float* dots,
                                 std::int64_t b, std::int64_t h, typename S::Index query) {
  if (query >= s.queries()) return {highest<float>(), 0};
  const std::int64_t row = first_term(f, s, b, h) + query;
  const float lse = static_cast<const float*>(f.lse)[row];
  // a query that sees no key has probabilities of 0
  return {lse == lowest<float>() ? highest<float>() : lse * kLog2OfE, dots[row]};
}

template <class E, int Width, bool simple, bool varlen>
__global__ void __launch_bounds__(128)
    attention_backward_queries_mma(AttentionBackwardArgs args, BackwardPacks packs,
                                   const float* dots, std::int64_t tiles) {
  using T = typename E::T;
  constexpr int kKeys = kStepsOfTile<Width>, kQueries = 64, columns = kKeys / 8;
  using Queries = HeadTile<E, kQueries, Width, simple>;
  using Keys = HeadTile<E, kKeys, Width, simple>;
  const AttentionArgs& f = args.forward;
  SIMT_DYN_SHARED(T, shared);
  T *const q = shared, *const dout = q + kQueries * Width, *const k = dout + kQueries * Width,
           *const v = k + 2 * kKeys * Width;
  const std::int64_t head = blockIdx.x / tiles, b = head / f.heads, h = head % f.heads;
  const int warp = warp_of_thread();
  const SequenceRows<varlen> s(f, b);
  using Index = typename SequenceRows<varlen>::Index;
  const Index first = static_cast<Index>(tiles - 1 - blockIdx.x % tiles) * kQueries,
              mine = first + warp * 16, end_of_keys = s.first_key() + s.keys(),
              end_of_queries = s.first_query() + s.queries();
  if (varlen && first >= s.queries()) return;
  const int steps = static_cast<int>((keys_before(f, s, first + kQueries) + kKeys - 1) / kKeys);
  const std::int64_t key_head = h / f.group;
  typename Keys::Loader keys(f.k, b, key_head, s.first_key(), end_of_keys),
      values(f.v, b, key_head, s.first_key(), end_of_keys);
  const auto load = [&](int step) {
    if (step < steps) {
      const int stage = step % 2 * (kKeys * Width);
      keys.load(k + stage, f.k, packs.k, f.width);
      values.load(v + stage, f.v, packs.v, f.value_width);
    }
    simt::cp_async_commit();
  };
  if (steps > 0) {  // what is copied must be waited for
    typename Queries::Loader(f.q, b, h, s.first_query() + first, end_of_queries)
        .load(q, f.q, packs.q, f.width);
    typename Queries::Loader(args.dout, b, h, s.first_query() + first, end_of_queries)
        .load(dout, args.dout, packs.dout, f.value_width);
  }
  load(0);

  const QueryTerms terms[2] = {terms_of(f, s, dots, b, h, mine + row_of_element(0)),
                               terms_of(f, s, dots, b, h, mine + row_of_element(2))};
  const float unit = unit_of<simple>(f);
  float dq[Width / 8][4] = {};
  for (int step = 0; step < steps; ++step) {
    simt::cp_async_wait<0>();
    __syncthreads();  // this tile has arrived, and the memory of the tile before it is free
    load(step + 1);
    const Index key = static_cast<Index>(step) * kKeys;
    const int stage = step % 2 * (kKeys * Width);
    float score[columns][4], dp[columns][4];
    multiply_rows_mma<E, typename Queries::By, typename Keys::By>(score, q, warp * 16, k + stage,
                                                                  Width);
    finish_scores<simple, false, E>(f, s, b, h, mine, key, score);
    multiply_rows_mma<E, typename Queries::By, typename Keys::By>(dp, dout, warp * 16, v + stage,
                                                                  Width);
#pragma unroll
    for (int n = 0; n < columns; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float drop = 1;
        if (!simple && f.threshold != 0)
          drop = drop_factor<float>(f, s, b, h, mine + row_of_element(c),
                                    key + column_of_element(n, c));
        const QueryTerms& of_row = terms[c / 2];
        score[n][c] =
            simt::exp2_approx(score[n][c] * unit - of_row.lse) * (dp[n][c] * drop - of_row.dot);
      }
    add_weighted_mma<E, typename Keys::Across>(dq, score, k + stage);
  }
  const float scale[2] = {static_cast<float>(f.scale), static_cast<float>(f.scale)};
  store_head_rows<E, Width>(args.dq, b, h, std::int64_t{s.first_query()} + mine, end_of_queries,
                            f.width, dq, scale, q + warp * 16 * Width);
}

template <class E, int Width, bool simple, bool varlen, KeyGrads grads>
__global__ void __launch_bounds__(128)
    attention_backward_keys_mma(AttentionBackwardArgs args, BackwardPacks packs, const float* dots,
                                std::int64_t tiles) {
  using T = typename E::T;
  constexpr int kQueries = kStepsOfTile<Width>, kKeys = 64, columns = kQueries / 8;
  constexpr bool with_dk = grads != KeyGrads::dv, with_dv = grads != KeyGrads::dk;
  using Queries = HeadTile<E, kQueries, Width, simple>;
  using Keys = HeadTile<E, kKeys, Width, simple>;
  const AttentionArgs& f = args.forward;
  SIMT_DYN_SHARED(T, shared);
  T *const k = shared, *const v = k + kKeys * Width, *const q = v + kKeys * Width,
           *const dout = q + 2 * kQueries * Width;
  QueryTerms* const terms = reinterpret_cast<QueryTerms*>(dout + 2 * kQueries * Width);
  const std::int64_t key_heads = f.heads / f.group, b = blockIdx.x / tiles / key_heads,
                     key_head = blockIdx.x / tiles % key_heads;
  const int warp = warp_of_thread();
  const SequenceRows<varlen> s(f, b);
  using Index = typename SequenceRows<varlen>::Index;
  const Index first = static_cast<Index>(blockIdx.x % tiles) * kKeys, mine = first + warp * 16,
              end_of_keys = s.first_key() + s.keys(),
              end_of_queries = s.first_query() + s.queries();
  if (varlen && first >= s.keys()) return;
  // earlier queries see none of these keys
  const Index from = first_seeing<kQueries>(f, s, first);
  const int steps =
      from < s.queries() ? static_cast<int>((s.queries() - from + kQueries - 1) / kQueries) : 0;
  std::int64_t h = key_head * f.group;  // the query heads of the group in turn
  const std::int64_t end = steps > 0 ? h + f.group : h;
  typename Queries::Loader queries(f.q, b, h, s.first_query() + from, end_of_queries),
      grads_of_out(args.dout, b, h, s.first_query() + from, end_of_queries);
  const auto load = [&](std::int64_t of, int step, int stage) {
    if (of < end) {
      if (step == 0) {
        queries = typename Queries::Loader(f.q, b, of, s.first_query() + from, end_of_queries);
        grads_of_out =
            typename Queries::Loader(args.dout, b, of, s.first_query() + from, end_of_queries);
      }
      queries.load(q + stage * (kQueries * Width), f.q, packs.q, f.width);
      grads_of_out.load(dout + stage * (kQueries * Width), args.dout, packs.dout, f.value_width);
      const int column = static_cast<int>(threadIdx.x);
      if (column < kQueries)
        terms[stage * kQueries + column] =
            terms_of(f, s, dots, b, of, from + static_cast<Index>(step) * kQueries + column);
    }
    simt::cp_async_commit();
  };
  if (steps > 0) {  // what is copied must be waited for
    typename Keys::Loader(f.k, b, key_head, s.first_key() + first, end_of_keys)
        .load(k, f.k, packs.k, f.width);
    typename Keys::Loader(f.v, b, key_head, s.first_key() + first, end_of_keys)
        .load(v, f.v, packs.v, f.value_width);
  }
  load(h, 0, 0);

  const float unit = unit_of<simple>(f);
  float dk[with_dk ? Width / 8 : 1][4] = {}, dv[with_dv ? Width / 8 : 1][4] = {};
  for (int step = 0, here = 0; h < end; here = 1 - here) {
    simt::cp_async_wait<0>();
    __syncthreads();  // this tile has arrived, and the memory of the tile before it is free
    const bool is_last = step + 1 == steps;
    load(is_last ? h + 1 : h, is_last ? 0 : step + 1, 1 - here);
    const Index query = from + static_cast<Index>(step) * kQueries;
    const int stage = here * (kQueries * Width);
    float p[columns][4], ds[columns][4];
    multiply_rows_mma<E, typename Keys::By, typename Queries::By>(p, k, warp * 16, q + stage,
                                                                  Width);
    finish_scores<simple, true, E>(f, s, b, h, query, mine, p);
    if constexpr (with_dk)
      multiply_rows_mma<E, typename Keys::By, typename Queries::By>(ds, v, warp * 16, dout + stage,
                                                                    Width);
#pragma unroll
    for (int n = 0; n < columns; ++n) {
      const auto two = load_pack<2>(terms + here * kQueries + column_of_element(n, 0));
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float drop = 1;
        if (!simple && f.threshold != 0)
          drop = drop_factor<float>(f, s, b, h, query + column_of_element(n, c),
                                    mine + row_of_element(c));
        const QueryTerms& of_column = two.v[c % 2];
        const float of_p = simt::exp2_approx(p[n][c] * unit - of_column.lse);
        if constexpr (with_dk) ds[n][c] = of_p * (ds[n][c] * drop - of_column.dot);
        p[n][c] = of_p * drop;
      }
    }
    if constexpr (with_dv) add_weighted_mma<E, typename Queries::Across>(dv, p, dout + stage);
    if constexpr (with_dk) add_weighted_mma<E, typename Queries::Across>(dk, ds, q + stage);
    step = is_last ? 0 : step + 1;
    if (is_last) ++h;
  }
  const float scale[2] = {static_cast<float>(f.scale), static_cast<float>(f.scale)},
              one[2] = {1, 1};
  if constexpr (with_dk)
    store_head_rows<E, Width>(args.dk, b, key_head, std::int64_t{s.first_key()} + mine, end_of_keys,
                              f.width, dk, scale, k + warp * 16 * Width);
  if constexpr (with_dv)
    store_head_rows<E, Width>(args.dv, b, key_head, std::int64_t{s.first_key()} + mine, end_of_keys,
                              f.value_width, dv, one, v + warp * 16 * Width);
}

void attention_backward_mma(const AttentionBackwardArgs& args, const float* dots, Stream& stream) {
  const AttentionArgs& f = args.forward;
  (void)with_floating(f.dtype, [&]<class E>() {
    if constexpr (sizeof(typename E::T) == 2) {
      using T = typename E::T;
      const std::int64_t heads = f.batch * f.heads, q_tiles = (f.queries + 63) / 64,
                         k_tiles = (most_keys(f) + 63) / 64,
                         most = heads * (q_tiles > k_tiles ? q_tiles : k_tiles);
      if (most > INT32_MAX)
        fail_size("attention_backward", "fewer than 2^31 tiles of 64 rows", most);
      const BackwardPacks packs{has_aligned_rows<T>(f.q, f), has_aligned_rows<T>(f.k, f),
                                has_aligned_rows<T>(f.v, f), has_aligned_rows<T>(args.dout, f)};
      const bool simple = packs.q && packs.k && packs.v && packs.dout && f.mask.data == nullptr &&
                          f.threshold == 0 && keeps_order(f);
      with_head(f, simple, [&]<int Width, bool Simple, bool varlen>() {
        constexpr std::size_t bytes = (2 * 64 + 4 * kStepsOfTile<Width>)*Width * sizeof(T) +
                                      2 * kStepsOfTile<Width> * sizeof(QueryTerms);
        const auto queue = [&](auto kernel, std::int64_t of, std::int64_t tiles) {
          if (tiles > 0)
            run_with(bytes, "attention_backward", kernel, static_cast<unsigned>(of * tiles), 128,
                     stream, args, packs, dots, tiles);
        };
        queue(attention_backward_queries_mma<E, Width, Simple, varlen>, heads, q_tiles);
        if constexpr (Width <= 128) {
          queue(attention_backward_keys_mma<E, Width, Simple, varlen, KeyGrads::both>,
                heads / f.group, k_tiles);
        } else {
          queue(attention_backward_keys_mma<E, Width, Simple, varlen, KeyGrads::dk>,
                heads / f.group, k_tiles);
          queue(attention_backward_keys_mma<E, Width, Simple, varlen, KeyGrads::dv>,
                heads / f.group, k_tiles);
        }
      });
    }
  });
}

}  // namespace braid::cuda
