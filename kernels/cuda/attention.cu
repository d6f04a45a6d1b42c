#include "cuda/attention_mma.hpp"
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

template <class E>
__global__ void __launch_bounds__(kThreads)
    attention_forward(AttentionArgs args, std::int64_t tiles) {
  using A = typename E::A;
  SIMT_SHARED(AttentionShared<A>, shared, );
  const int lane = lane_of_thread(), warp = warp_of_thread(), width = static_cast<int>(args.width),
            value_width = static_cast<int>(args.value_width);
  for (std::int64_t t = blockIdx.x; t < args.batch * args.heads * tiles; t += gridDim.x) {
    const Place at = place_of(t, tiles, args.heads);
    const std::int64_t key_head = at.h / args.group;
    const HeadRows<E> q = rows_of<E>(args.q, at.b, at.h, at.first, args.queries);
    const std::int64_t end =
        args.causal && at.first + kSide < args.keys ? at.first + kSide : args.keys;
    A max[kRowsOfWarp], sum[kRowsOfWarp], out[kChunks][kRowsOfWarp] = {};
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) max[r] = lowest<A>(), sum[r] = A(0);
    for (std::int64_t j = 0; j < end; j += kSide) {
      A score[kRowsOfWarp];
      multiply_rows<E>(shared, q, rows_of<E>(args.k, at.b, key_head, j, args.keys), width, score);
      Pack<A, 4> four;
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const std::int64_t query = at.first + kRowsOfWarp * warp + r;
        const A s = score_of<E>(args, at.b, at.h, query, j + lane, score[r]);
        const A here = WarpGroup{}.join(MaxOfNumbers<A>{}, s),
                above = MaxOfNumbers<A>{}.join(max[r], here);
        const bool nothing = above == lowest<A>();
        const A p = exp_of(s - (nothing ? A(0) : above)),
                keep = nothing || max[r] == above ? A(1) : exp_of(max[r] - above);
        sum[r] = sum[r] * keep + WarpGroup{}.join(Sum<A>{}, p);
        max[r] = above;
        four.v[r] = p * drop_factor<A>(args, at.b, at.h, query, j + lane);
#pragma unroll
        for (int c = 0; c < kChunks; ++c) out[c][r] *= keep;
      }
      shared.scores[warp][lane] = four;
      add_weighted<E>(shared, rows_of<E>(args.v, at.b, key_head, j, args.keys), value_width, out);
    }
    A factor[kRowsOfWarp];
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const std::int64_t query = at.first + kRowsOfWarp * warp + r;
      factor[r] = sum[r] == A(0) ? A(0) : A(1) / sum[r];
      if (lane == 0 && query < args.queries)
        static_cast<A*>(args.lse)[(at.b * args.heads + at.h) * args.queries + query] =
            sum[r] == A(0) ? lowest<A>() : max[r] + log_of(sum[r]);
    }
    store_rows<E>(args.out, at.b, at.h, at.first, args.queries, args.value_width, out, factor);
  }
}

/// dots[row] = Σ out dout. One warp computes one row of [batch, heads, queries].
template <class E>
__global__ void __launch_bounds__(kThreads)
    attention_dots(AttentionBackwardArgs args, typename E::A* dots) {
  using A = typename E::A;
  using T = typename E::T;
  const AttentionArgs& f = args.forward;
  const std::int64_t rows = f.batch * f.heads * f.queries;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); i < rows;
       i += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    const std::int64_t query = i % f.queries, h = i / f.queries % f.heads,
                       b = i / f.queries / f.heads;
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
template <class E>
BRAID_DEVICE Gradient<typename E::A> gradient_of(const AttentionArgs& f, const typename E::A* dots,
                                                 const Place& at, std::int64_t query,
                                                 std::int64_t key, typename E::A product,
                                                 typename E::A dp) {
  using A = typename E::A;
  const A s = score_of<E>(f, at.b, at.h, query, key, product);
  if (query >= f.queries || key >= f.keys) return {A(0), A(0)};
  const std::int64_t row = (at.b * f.heads + at.h) * f.queries + query;
  const A lse = static_cast<const A*>(f.lse)[row];
  const A p = lse == lowest<A>() ? A(0) : exp_of(s - lse),
          factor = drop_factor<A>(f, at.b, at.h, query, key);
  return {p * factor, p * (dp * factor - dots[row]) * static_cast<A>(f.scale)};
}

/// Computes dq of 32 queries. 0 blocks on a multiprocessor: as nvcc likes.
template <class E>
__global__ void __launch_bounds__(kThreads, sizeof(typename E::A) == 4 ? 0 : 3)
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
    const std::int64_t key_head = at.h / f.group;
    const HeadRows<E> q = rows_of<E>(f.q, at.b, at.h, at.first, f.queries),
                      dout = rows_of<E>(args.dout, at.b, at.h, at.first, f.queries);
    const std::int64_t end = f.causal && at.first + kSide < f.keys ? at.first + kSide : f.keys;
    A dq[kChunks][kRowsOfWarp] = {};
    for (std::int64_t j = 0; j < end; j += kSide) {
      const HeadRows<E> k = rows_of<E>(f.k, at.b, key_head, j, f.keys);
      A score[kRowsOfWarp], dp[kRowsOfWarp];
      multiply_rows<E>(shared, q, k, width, score);
      multiply_rows<E>(shared, dout, rows_of<E>(f.v, at.b, key_head, j, f.keys), value_width, dp);
      Pack<A, 4> four;
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r)
        four.v[r] = gradient_of<E>(f, dots, at, at.first + kRowsOfWarp * warp + r, j + lane,
                                   score[r], dp[r])
                        .ds;
      shared.scores[warp][lane] = four;
      add_weighted<E>(shared, k, width, dq);
    }
    store_rows<E>(args.dq, at.b, at.h, at.first, f.queries, f.width, dq, ones);
  }
}

/// Computes dk and dv of 32 keys, from the query heads of their group in turn. Here rows of a tile
/// are keys and columns are queries.
template <class E>
__global__ void __launch_bounds__(kThreads, sizeof(typename E::A) == 4 ? 3 : 2)
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
    const HeadRows<E> k = rows_of<E>(f.k, mine.b, mine.h, mine.first, f.keys),
                      v = rows_of<E>(f.v, mine.b, mine.h, mine.first, f.keys);
    A dk[kChunks][kRowsOfWarp] = {}, dv[kChunks][kRowsOfWarp] = {};
    for (std::int64_t g = 0; g < f.group; ++g) {
      const Place at{mine.b, mine.h * f.group + g, mine.first};
      // earlier queries see none of these keys
      for (std::int64_t i = f.causal ? at.first : 0; i < f.queries; i += kSide) {
        const HeadRows<E> q = rows_of<E>(f.q, at.b, at.h, i, f.queries),
                          dout = rows_of<E>(args.dout, at.b, at.h, i, f.queries);
        A score[kRowsOfWarp], dp[kRowsOfWarp];
        multiply_rows<E>(shared, k, q, width, score);
        multiply_rows<E>(shared, v, dout, value_width, dp);
        Pack<A, 4> p, ds;
#pragma unroll
        for (int r = 0; r < kRowsOfWarp; ++r) {
          const Gradient<A> of = gradient_of<E>(f, dots, at, i + lane,
                                                at.first + kRowsOfWarp * warp + r, score[r], dp[r]);
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
    store_rows<E>(args.dk, mine.b, mine.h, mine.first, f.keys, f.width, dk, ones);
    store_rows<E>(args.dv, mine.b, mine.h, mine.first, f.keys, f.value_width, dv, ones);
  }
}

void check_attention(const char* op, const AttentionArgs& args) {
  if (!is_floating(args.dtype)) fail_dtype(op, "a floating-point dtype", args.dtype);
  const std::int64_t widest = args.width > args.value_width ? args.width : args.value_width;
  const bool narrow = size_of(args.dtype) == 2;
  if (widest > (narrow ? kWidestMmaHead : kChunks * kSide))
    fail_size(op, narrow ? "a width of at most 256" : "a width of at most 128", widest);
}

void attention(const AttentionArgs& args, Stream& stream) {
  check_attention("attention", args);
  if (args.batch <= 0 || args.heads <= 0 || args.queries <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    if constexpr (sizeof(typename E::T) == 2) {
      attention_mma(args, stream);
    } else {
      const std::int64_t tiles = (args.queries + kSide - 1) / kSide;
      run("attention", attention_forward<E>, blocks_for(args.batch * args.heads * tiles, 1),
          kThreads, stream, args, tiles);
    }
  });
}

void attention_backward(const AttentionBackwardArgs& args, Stream& stream) {
  const AttentionArgs& f = args.forward;
  check_attention("attention_backward", f);
  if (f.batch <= 0 || f.heads <= 0) return;
  (void)with_floating(f.dtype, [&]<class E>() {
    using A = typename E::A;
    const std::int64_t heads = f.batch * f.heads, rows = heads * f.queries;
    const Scratch dots(static_cast<std::size_t>(rows > 0 ? rows : 1) * sizeof(A), stream);
    A* const d = static_cast<A*>(dots.data());
    if (rows > 0)
      run("attention_backward", attention_dots<E>, blocks_for(rows, kWarps), kThreads, stream, args,
          d);
    if constexpr (sizeof(typename E::T) == 2) {
      attention_backward_mma(args, d, stream);
    } else {
      const std::int64_t q_tiles = (f.queries + kSide - 1) / kSide,
                         k_tiles = (f.keys + kSide - 1) / kSide;
      if (rows > 0)
        run("attention_backward", attention_backward_queries<E>, blocks_for(heads * q_tiles, 1),
            kThreads, stream, args, d, q_tiles);
      if (k_tiles > 0)
        run("attention_backward", attention_backward_keys<E>,
            blocks_for(heads / f.group * k_tiles, 1), kThreads, stream, args, d, k_tiles);
    }
  });
}

}  // namespace braid::cuda
