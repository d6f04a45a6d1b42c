#pragma once
#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/row_sum.cuh"
#include "cuda/device/tickets.cuh"

// How the sums of the blocks of norm_rows_backward.cu become the gradients of the weights: by its
// last blocks, or, where the sums are many, by a kernel of all SMs. Both add in the same order.
namespace braid::cuda {

/// The most packs of a sum, of all blocks, that the last blocks join: a thread of them reads 64.
inline constexpr std::int64_t kMostJoined = 1 << 16;

/// The sums of all blocks, and what becomes of them: block t adds to chain t % kWarps, in the order
/// of t, and a tree adds the chains.
template <class E> struct BlockSums {
  using T = typename E::T;
  using A = typename E::A;
  A* parts;            // [blocks][2][n]: Σ dy h and Σ dy of a block's rows
  A* chains;           // [kWarps][2][n], after the parts
  unsigned* counters;  // of each chain, then of the chains; null: norm_rows_join adds the sums
  T* dweight;          // or null, as dbias
  T* dbias;
};

/// Adds the sums in the last block of each chain, and the chains in the last of these. Requires a
/// barrier after the block's sums were written.
template <bool packed, class E> BRAID_DEVICE void join_sums(const BlockSums<E>& to, int n) {
  using A = typename E::A;
  constexpr int width = packed ? kWidest<A> : 1;
  if (to.counters == nullptr) return;
  const int blocks = static_cast<int>(gridDim.x), own = static_cast<int>(blockIdx.x) % kWarps,
            chains = blocks < kWarps ? blocks : kWarps;
  const int first = static_cast<int>(threadIdx.x) * width + (to.dweight == nullptr ? n : 0),
            end = to.dbias == nullptr ? n : 2 * n;
  if (!arrives_last(to.counters + own, static_cast<unsigned>((blocks - 1 - own) / kWarps + 1)))
    return;
#pragma unroll 1
  for (int j = first; j < end; j += kThreads * width) {
    A sum[width] = {};
#pragma unroll 8
    for (int t = own; t < blocks; t += kWarps) {
      const auto part = load_pack<width>(to.parts + t * 2 * n + j);
#pragma unroll
      for (int k = 0; k < width; ++k) sum[k] += part.v[k];
    }
    Pack<A, width> all;
#pragma unroll
    for (int k = 0; k < width; ++k) all.v[k] = sum[k];
    store_pack(to.chains + own * 2 * n + j, all);
  }
  __syncthreads();  // one thread tells the last block of the whole chain
  if (!arrives_last(to.counters + kWarps, static_cast<unsigned>(chains))) return;
#pragma unroll 1
  for (int j = first; j < end; j += kThreads * width) {
    A part[kWarps][width];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      Pack<A, width> chain{};
      if (w < chains) chain = load_pack<width>(to.chains + w * 2 * n + j);
#pragma unroll
      for (int k = 0; k < width; ++k) part[w][k] = chain.v[k];
    }
    typename E::T* const out = j < n ? to.dweight + j : to.dbias + (j - n);
#pragma unroll
    for (int k = 0; k < width; ++k)
      out[k] = E::store(tree_sum<kWarps, A>([&](int w) { return part[w][k]; }));
  }
}

/// Adds the sums of many blocks: a block has 32 columns of dweight (y = 0) or dbias (y = 1), and
/// each of its warps adds every eighth tile.
template <class E>
__global__ void __launch_bounds__(kThreads)
    norm_rows_join(const typename E::A* parts, int tiles, std::int64_t n, typename E::T* dweight,
                   typename E::T* dbias) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps][32]);
  typename E::T* const to = blockIdx.y == 0 ? dweight : dbias;
  if (to == nullptr) return;
  const int lane = lane_of_thread(), warp = warp_of_thread();
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
  A sum = A(0);
  if (j < n) {
    const A* const from = parts + blockIdx.y * n + j;
#pragma unroll 8
    for (int t = warp; t < tiles; t += kWarps) sum += from[t * 2 * n];
  }
  part[warp][lane] = sum;
  __syncthreads();
  if (warp == 0 && j < n)
    to[j] = E::store(tree_sum<kWarps, A>([&](int w) { return part[w][lane]; }));
}

}  // namespace braid::cuda
