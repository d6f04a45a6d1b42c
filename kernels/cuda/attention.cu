#include "cuda/attention_mma.hpp"
#include "cuda/attention_starts.hpp"
#include "cuda/device/attention.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Attention of float32 and float64, and the sums that both backwards need; float16 and bfloat16 are
// in attention_mma.cu. By tiles of 32 queries and 32 keys with a running maximum (Dao et al. 2022,
// arXiv:2205.14135). The backward pass has a kernel for dq, which iterates over keys, and one for
// dk and dv, which iterates over queries, so no sum needs an atomic. Products run on the CUDA cores
// in float32 (float64).
// Traffic  The forward and dq read k and v once for each tile of 32 queries; dk and dv read q and
//          dout once for each tile of 32 keys.
namespace braid::cuda {

/// The head and the first row of a block's tile.
struct Place {
  std::int64_t b, h, first;
};
BRAID_DEVICE Place place_of(std::int64_t tile, std::int64_t tiles, std::int64_t heads) {
  return {tile / tiles / heads, tile / tiles % heads, tile % tiles * kSide};
}

template <class E, bool varlen>
__global__ void __launch_bounds__(kThreads)
    attention_forward(AttentionArgs args, std::int64_t tiles) {
  using A = typename E::A;
  SIMT_SHARED(AttentionShared<A>, shared, );
  const int lane = lane_of_thread(), warp = warp_of_thread(), width = static_cast<int>(args.width),
            value_width = static_cast<int>(args.value_width);
  for (std::int64_t t = blockIdx.x; t < args.batch * args.heads * tiles; t += gridDim.x) {
    const Place at = place_of(t, tiles, args.heads);
    const SequenceRows<varlen> s(args, at.b);
    using Index = typename SequenceRows<varlen>::Index;
    const auto first = static_cast<Index>(at.first);
    if (varlen && first >= s.queries()) continue;
    const Index end_of_keys = s.first_key() + s.keys(),
                end_of_queries = s.first_query() + s.queries();
    const std::int64_t key_head = at.h / args.group;
    const HeadRows<E> q = rows_of<E>(args.q, at.b, at.h, s.first_query() + first, end_of_queries);
    const Index end = keys_before(args, s, first + kSide);
    A max[kRowsOfWarp], sum[kRowsOfWarp], out[kChunks][kRowsOfWarp] = {};
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) max[r] = lowest<A>(), sum[r] = A(0);
    for (Index j = 0; j < end; j += kSide) {
      A score[kRowsOfWarp];
      multiply_rows<E>(shared, q,
                       rows_of<E>(args.k, at.b, key_head, s.first_key() + j, end_of_keys), width,
                       score);
      Pack<A, 4> four;
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const Index query = first + kRowsOfWarp * warp + r;
        const A x = score_of<E>(args, s, at.b, at.h, query, j + lane, score[r]);
        const A here = WarpGroup{}.join(MaxOfNumbers<A>{}, x),
                above = MaxOfNumbers<A>{}.join(max[r], here);
        const bool nothing = above == lowest<A>();
        const A p = exp_of(x - (nothing ? A(0) : above)),
                keep = nothing || max[r] == above ? A(1) : exp_of(max[r] - above);
        sum[r] = sum[r] * keep + WarpGroup{}.join(Sum<A>{}, p);
        max[r] = above;
        four.v[r] = p * drop_factor<A>(args, s, at.b, at.h, query, j + lane);
#pragma unroll
        for (int c = 0; c < kChunks; ++c) out[c][r] *= keep;
      }
      shared.scores[warp][lane] = four;
      add_weighted<E>(shared, rows_of<E>(args.v, at.b, key_head, s.first_key() + j, end_of_keys),
                      value_width, out);
    }
    A factor[kRowsOfWarp];
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const Index query = first + kRowsOfWarp * warp + r;
      factor[r] = sum[r] == A(0) ? A(0) : A(1) / sum[r];
      if (lane == 0 && query < s.queries())
        static_cast<A*>(args.lse)[first_term(args, s, at.b, at.h) + query] =
            sum[r] == A(0) ? lowest<A>() : max[r] + log_of(sum[r]);
    }
    store_rows<E>(args.out, at.b, at.h, s.first_query() + first, end_of_queries, args.value_width,
                  out, factor);
  }
}

/// dots[row] = Σ out dout. One warp computes one row of [batch, heads, queries], or, of sequences
/// of several lengths, of [1, heads, q_rows].
template <class E>
__global__ void __launch_bounds__(kThreads)
    attention_dots(AttentionBackwardArgs args, std::int64_t rows, std::int64_t queries,
                   typename E::A* dots) {
  using A = typename E::A;
  using T = typename E::T;
  const AttentionArgs& f = args.forward;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); i < rows;
       i += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    const std::int64_t query = i % queries, h = i / queries % f.heads, b = i / queries / f.heads;
    const T* const out =
        static_cast<const T*>(f.out.data) + b * f.out.batch + h * f.out.head + query * f.out.row;
    const T* const dout = static_cast<const T*>(args.dout.data) + b * args.dout.batch +
                          h * args.dout.head + query * args.dout.row;
    A sum = A(0);
    for (std::int64_t c = lane_of_thread(); c < f.value_width; c += 32)
      sum += E::load(out[c]) * E::load(dout[c]);
    sum = WarpGroup{}.join(Sum<A>{}, sum);
    if (lane_of_thread() == 0) dots[i] = sum;
  }
}

/// A probability (times its dropout factor) and the gradient of its score.
template <class A> struct Gradient {
  A p, ds;
};
template <class E, class S>
BRAID_DEVICE Gradient<typename E::A> gradient_of(const AttentionArgs& f, const S& s,
                                                 const typename E::A* dots, const Place& at,
                                                 typename S::Index query, typename S::Index key,
                                                 typename E::A product, typename E::A dp) {
  using A = typename E::A;
  const A score = score_of<E>(f, s, at.b, at.h, query, key, product);
  if (query >= s.queries() || key >= s.keys()) return {A(0), A(0)};
  const std::int64_t row = first_term(f, s, at.b, at.h) + query;
  const A lse = static_cast<const A*>(f.lse)[row];
  const A p = lse == lowest<A>() ? A(0) : exp_of(score - lse),
          factor = drop_factor<A>(f, s, at.b, at.h, query, key);
  return {p * factor, p * (dp * factor - dots[row]) * static_cast<A>(f.scale)};
}

/// Computes dq of 32 queries. 0 blocks on a multiprocessor: as nvcc likes.
template <class E, bool varlen>
__global__ void __launch_bounds__(kThreads, sizeof(typename E::A) == 4 ? 0
                                            : varlen                   ? 2
                                                                       : 3)
    attention_backward_queries(AttentionBackwardArgs args, const typename E::A* dots,
                               std::int64_t tiles) {
  using A = typename E::A;
  SIMT_SHARED(AttentionShared<A>, shared, );
  const AttentionArgs& f = args.forward;
  const int lane = lane_of_thread(), warp = warp_of_thread(), width = static_cast<int>(f.width),
            value_width = static_cast<int>(f.value_width);
  const A ones[kRowsOfWarp] = {A(1), A(1), A(1), A(1)};
  for (std::int64_t t = blockIdx.x; t < f.batch * f.heads * tiles; t += gridDim.x) {
    const Place at = place_of(t, tiles, f.heads);
    const SequenceRows<varlen> s(f, at.b);
    using Index = typename SequenceRows<varlen>::Index;
    const auto first = static_cast<Index>(at.first);
    if (varlen && first >= s.queries()) continue;
    const Index row = s.first_query() + first, end_of_keys = s.first_key() + s.keys(),
                end_of_queries = s.first_query() + s.queries();
    const std::int64_t key_head = at.h / f.group;
    const HeadRows<E> q = rows_of<E>(f.q, at.b, at.h, row, end_of_queries),
                      dout = rows_of<E>(args.dout, at.b, at.h, row, end_of_queries);
    const Index end = keys_before(f, s, first + kSide);
    A dq[kChunks][kRowsOfWarp] = {};
    for (Index j = 0; j < end; j += kSide) {
      const HeadRows<E> k = rows_of<E>(f.k, at.b, key_head, s.first_key() + j, end_of_keys);
      A score[kRowsOfWarp], dp[kRowsOfWarp];
      multiply_rows<E>(shared, q, k, width, score);
      multiply_rows<E>(shared, dout,
                       rows_of<E>(f.v, at.b, key_head, s.first_key() + j, end_of_keys), value_width,
                       dp);
      Pack<A, 4> four;
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r)
        four.v[r] = gradient_of<E>(f, s, dots, at, first + kRowsOfWarp * warp + r, j + lane,
                                   score[r], dp[r])
                        .ds;
      shared.scores[warp][lane] = four;
      add_weighted<E>(shared, k, width, dq);
    }
    store_rows<E>(args.dq, at.b, at.h, row, end_of_queries, f.width, dq, ones);
  }
}

/// Computes dk and dv of 32 keys, from the query heads of their group in turn. Here rows of a tile
/// are keys and columns are queries.
template <class E, bool varlen>
__global__ void __launch_bounds__(kThreads, sizeof(typename E::A) == 4 && !varlen ? 3 : 2)
    attention_backward_keys(AttentionBackwardArgs args, const typename E::A* dots,
                            std::int64_t tiles) {
  using A = typename E::A;
  SIMT_SHARED(AttentionShared<A>, shared, );
  const AttentionArgs& f = args.forward;
  const int lane = lane_of_thread(), warp = warp_of_thread(), width = static_cast<int>(f.width),
            value_width = static_cast<int>(f.value_width);
  const A ones[kRowsOfWarp] = {A(1), A(1), A(1), A(1)};
  const std::int64_t key_heads = f.heads / f.group;
  for (std::int64_t t = blockIdx.x; t < f.batch * key_heads * tiles; t += gridDim.x) {
    const Place mine = place_of(t, tiles, key_heads);
    const SequenceRows<varlen> s(f, mine.b);
    using Index = typename SequenceRows<varlen>::Index;
    const auto first = static_cast<Index>(mine.first);
    if (varlen && first >= s.keys()) continue;
    const Index row = s.first_key() + first, end_of_keys = s.first_key() + s.keys(),
                end_of_queries = s.first_query() + s.queries();
    const HeadRows<E> k = rows_of<E>(f.k, mine.b, mine.h, row, end_of_keys),
                      v = rows_of<E>(f.v, mine.b, mine.h, row, end_of_keys);
    A dk[kChunks][kRowsOfWarp] = {}, dv[kChunks][kRowsOfWarp] = {};
    for (std::int64_t g = 0; g < f.group; ++g) {
      const Place at{mine.b, mine.h * f.group + g, mine.first};
      // earlier queries see none of these keys
      for (Index i = first_seeing<kSide>(f, s, first); i < s.queries(); i += kSide) {
        const HeadRows<E> q = rows_of<E>(f.q, at.b, at.h, s.first_query() + i, end_of_queries),
                          dout = rows_of<E>(args.dout, at.b, at.h, s.first_query() + i,
                                            end_of_queries);
        A score[kRowsOfWarp], dp[kRowsOfWarp];
        multiply_rows<E>(shared, k, q, width, score);
        multiply_rows<E>(shared, v, dout, value_width, dp);
        Pack<A, 4> p, ds;
#pragma unroll
        for (int r = 0; r < kRowsOfWarp; ++r) {
          const Gradient<A> of = gradient_of<E>(f, s, dots, at, i + lane,
                                                first + kRowsOfWarp * warp + r, score[r], dp[r]);
          p.v[r] = of.p;
          ds.v[r] = of.ds;
        }
        shared.scores[warp][lane] = p;
        add_weighted<E>(shared, dout, value_width, dv);
        __syncwarp(kFullWarp);  // all lanes have read the probabilities
        shared.scores[warp][lane] = ds;
        add_weighted<E>(shared, q, width, dk);
      }
    }
    store_rows<E>(args.dk, mine.b, mine.h, row, end_of_keys, f.width, dk, ones);
    store_rows<E>(args.dv, mine.b, mine.h, row, end_of_keys, f.value_width, dv, ones);
  }
}

void check_attention(const char* op, const AttentionArgs& args) {
  if (!is_floating(args.dtype)) fail_dtype(op, "a floating-point dtype", args.dtype);
  const std::int64_t widest = args.width > args.value_width ? args.width : args.value_width;
  const bool narrow = size_of(args.dtype) == 2;
  if (widest > (narrow ? kWidestMmaHead : kChunks * kSide))
    fail_size(op, narrow ? "a width of at most 256" : "a width of at most 128", widest);
  const std::int64_t rows = args.queries > args.keys ? args.queries : args.keys;
  if (args.sequences.q_starts != nullptr && rows > kMostRows)
    fail_size(op, "fewer than 2^31 - 256 queries and keys", rows);
}

void queue_forward(const AttentionArgs& args, Stream& stream) {
  (void)with_floating(args.dtype, [&]<class E>() {
    if constexpr (sizeof(typename E::T) == 2) {
      attention_mma(args, stream);
    } else {
      const std::int64_t tiles = (args.queries + kSide - 1) / kSide;
      run("attention",
          args.sequences.q_starts == nullptr ? attention_forward<E, false>
                                             : attention_forward<E, true>,
          blocks_for(args.batch * args.heads * tiles, 1), kThreads, stream, args, tiles);
    }
  });
}

void queue_backward(const AttentionBackwardArgs& args, Stream& stream) {
  const AttentionArgs& f = args.forward;
  const bool one_length = f.sequences.q_starts == nullptr;
  (void)with_floating(f.dtype, [&]<class E>() {
    using A = typename E::A;
    const std::int64_t heads = f.batch * f.heads,
                       queries = one_length ? f.queries : f.sequences.q_rows,
                       rows = (one_length ? heads : f.heads) * queries;
    const Scratch dots(static_cast<std::size_t>(rows > 0 ? rows : 1) * sizeof(A), stream);
    A* const d = static_cast<A*>(dots.data());
    if (rows > 0)
      run("attention_backward", attention_dots<E>, blocks_for(rows, kWarps), kThreads, stream, args,
          rows, queries, d);
    if constexpr (sizeof(typename E::T) == 2) {
      attention_backward_mma(args, d, stream);
    } else {
      const std::int64_t q_tiles = (f.queries + kSide - 1) / kSide,
                         k_tiles = (most_keys(f) + kSide - 1) / kSide;
      if (rows > 0)
        run("attention_backward",
            one_length ? attention_backward_queries<E, false> : attention_backward_queries<E, true>,
            blocks_for(heads * q_tiles, 1), kThreads, stream, args, d, q_tiles);
      if (k_tiles > 0)
        run("attention_backward",
            one_length ? attention_backward_keys<E, false> : attention_backward_keys<E, true>,
            blocks_for(heads / f.group * k_tiles, 1), kThreads, stream, args, d, k_tiles);
    }
  });
}

void attention(const AttentionArgs& args, Stream& stream) {
  check_attention("attention", args);
  if (args.batch <= 0 || args.heads <= 0 || args.queries <= 0) return;
  if (args.sequences.q_starts == nullptr) return queue_forward(args, stream);
  const FittedSequences sequences(args, stream);
  AttentionArgs fitted = args;
  fitted.sequences = sequences.get();
  queue_forward(fitted, stream);
}

void attention_backward(const AttentionBackwardArgs& args, Stream& stream) {
  check_attention("attention_backward", args.forward);
  if (args.forward.batch <= 0 || args.forward.heads <= 0) return;
  if (args.forward.sequences.q_starts == nullptr) return queue_backward(args, stream);
  const FittedSequences sequences(args, stream);
  AttentionBackwardArgs fitted = args;
  fitted.forward.sequences = sequences.get();
  queue_backward(fitted, stream);
}

}  // namespace braid::cuda
