#include "cuda/norm_sums.hpp"

#include "cuda/device/element.cuh"
#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/row_sum.cuh"

// Two sums for each channel, in two steps: first per tile of the batch, then over the tiles as a
// tree. No atomics, so the order is fixed.
// Traffic  x (and dy) are read once.
namespace braid::cuda {

inline constexpr std::int64_t kMostTiles = 64;

template <class A> struct Two {
  A first, second;
};

/// The terms that are summed.
template <class E> struct Terms {
  using T = typename E::T;
  using A = typename E::A;
  const T* x;
  const T* dy;
  const A* mean;
  const A* rstd;
  ChannelTerms terms;
  std::int64_t batch, channels, inner, groups, rows;  // rows: of the batch in a tile

  Divider per_group;  // channels of a group

  /// The place of a channel's statistics for sample 0; a sample's are `groups` further.
  BRAID_DEVICE std::int64_t statistics(std::int64_t c) const {
    return groups > 0 ? per_group.divide(c, channels < std::int64_t{1} << 31) : c;
  }
  BRAID_DEVICE Two<A> at(std::int64_t i, std::int64_t s) const {
    const A value = E::load(x[i]);
    if (terms == ChannelTerms::elements) return {value, A(0)};
    const A away = mean == nullptr ? value : value - mean[s];
    if (terms == ChannelTerms::deviations) return {away * away, A(0)};
    const A d = E::load(dy[i]);
    return {d, d * away * rstd[s]};
  }
};

/// inner == 1: each block has 32 channels and a tile of the batch; each of its warps adds every
/// eighth row.
template <class E>
__global__ void __launch_bounds__(kThreads) sum_columns(Terms<E> in, typename E::A* parts) {
  using A = typename E::A;
  SIMT_SHARED(A, first, [kWarps][32]);
  SIMT_SHARED(A, second, [kWarps][32]);
  const int lane = lane_of_thread(), warp = warp_of_thread();
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * 32 + lane,
                     begin = static_cast<std::int64_t>(blockIdx.y) * in.rows;
  const std::int64_t end = begin + in.rows < in.batch ? begin + in.rows : in.batch;
  Two<A> sum{A(0), A(0)};
  if (c < in.channels) {
    const std::int64_t of_channel = in.statistics(c);
    for (std::int64_t o = begin + warp; o < end; o += kWarps) {
      const Two<A> term = in.at(o * in.channels + c, o * in.groups + of_channel);
      sum.first += term.first;
      sum.second += term.second;
    }
  }
  first[warp][lane] = sum.first;
  second[warp][lane] = sum.second;
  __syncthreads();
  if (warp != 0 || c >= in.channels) return;
  A* const to = parts + (static_cast<std::int64_t>(blockIdx.y) * 2) * in.channels + c;
  to[0] = tree_sum<kWarps, A>([&](int w) { return first[w][lane]; });
  to[in.channels] = tree_sum<kWarps, A>([&](int w) { return second[w][lane]; });
}

/// inner > 1: one channel and a tile of the batch for each block.
template <class E>
__global__ void __launch_bounds__(kThreads) sum_runs(Terms<E> in, typename E::A* parts) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  const BlockGroup<A> group{part};
  for (std::int64_t c = blockIdx.x; c < in.channels; c += gridDim.x) {
    const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * in.rows;
    const std::int64_t end = begin + in.rows < in.batch ? begin + in.rows : in.batch;
    const std::int64_t of_channel = in.statistics(c);
    Two<A> sum{A(0), A(0)};
    for (std::int64_t o = begin; o < end; ++o) {
      const std::int64_t run = (o * in.channels + c) * in.inner, s = o * in.groups + of_channel;
      for (std::int64_t l = group.rank(); l < in.inner; l += kThreads) {
        const Two<A> term = in.at(run + l, s);
        sum.first += term.first;
        sum.second += term.second;
      }
    }
    sum.first = group.join(Sum<A>{}, sum.first);
    sum.second = group.join(Sum<A>{}, sum.second);
    if (group.rank() == 0) {
      A* const to = parts + (static_cast<std::int64_t>(blockIdx.y) * 2) * in.channels + c;
      to[0] = sum.first;
      to[in.channels] = sum.second;
    }
  }
}

/// The outputs.
template <class E> struct Results {
  using T = typename E::T;
  using A = typename E::A;
  A* mean;
  A* rstd;
  A* var;
  T* weight;
  T* bias;
  A* means;
  A count, eps;
};

/// Σ of parts[t * step] for t in [0, tiles), tiles <= kMostTiles, as a tree of neighbours.
template <class A> BRAID_DEVICE A join_tiles(const A* parts, std::int64_t step, int tiles) {
  A level[7];  // of a binary counter
  int count = 0;
  for (; count < tiles; ++count) {
    A value = parts[count * step];
    int k = 0;
#pragma unroll
    for (int bit = 0; bit < 6; ++bit) {
      if (k != bit || ((count >> bit) & 1) == 0) continue;
      value = level[bit] + value;
      ++k;
    }
#pragma unroll
    for (int bit = 0; bit < 7; ++bit)
      if (bit == k) level[bit] = value;
  }
  A total = A(0);
  bool any = false;
#pragma unroll
  for (int bit = 0; bit < 7; ++bit) {
    if (((count >> bit) & 1) == 0) continue;
    total = any ? level[bit] + total : level[bit];
    any = true;
  }
  return total;
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    finish_channels(const typename E::A* parts, int tiles, std::int64_t channels,
                    ChannelTerms terms, Results<E> to) {
  using A = typename E::A;
  for (std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       c < channels; c += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const A first = join_tiles(parts + c, 2 * channels, tiles);
    if (terms == ChannelTerms::elements) {
      to.mean[c] = first / to.count;
    } else if (terms == ChannelTerms::deviations) {
      const A var = first / to.count;
      to.var[c] = var;
      to.rstd[c] = A(1) / sqrt_of(var + to.eps);
    } else {
      const A second = join_tiles(parts + channels + c, 2 * channels, tiles);
      if (to.bias != nullptr) to.bias[c] = E::store(first);
      if (to.weight != nullptr) to.weight[c] = E::store(second);
      if (to.means != nullptr) {
        to.means[c] = first / to.count;
        to.means[channels + c] = second / to.count;
      }
    }
  }
}

void channel_sums(const char* op, const ChannelSums& args, Stream& stream) {
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    std::int64_t rows = args.inner == 1 ? 4 * kWarps : 1;
    while (rows * kMostTiles < args.batch) rows *= 2;
    const std::int64_t tiles = (args.batch + rows - 1) / rows;
    const Scratch scratch(static_cast<std::size_t>(tiles * 2 * args.channels) * sizeof(A), stream);
    A* const parts = static_cast<A*>(scratch.data());
    const Terms<E> in{static_cast<const T*>(args.x),
                      static_cast<const T*>(args.dy),
                      static_cast<const A*>(args.mean),
                      static_cast<const A*>(args.rstd),
                      args.terms,
                      args.batch,
                      args.channels,
                      args.inner,
                      args.groups,
                      rows,
                      Divider(args.groups > 0 ? args.channels / args.groups : 1)};
    const unsigned down = static_cast<unsigned>(tiles);
    if (args.inner == 1)
      run(op, sum_columns<E>, dim3(static_cast<unsigned>((args.channels + 31) / 32), down),
          kThreads, stream, in, parts);
    else
      run(op, sum_runs<E>, dim3(blocks_for(args.channels, 1), down), kThreads, stream, in, parts);
    const Results<E> to{static_cast<A*>(args.mean),
                        static_cast<A*>(args.rstd),
                        static_cast<A*>(args.var),
                        static_cast<T*>(args.weight),
                        static_cast<T*>(args.bias),
                        static_cast<A*>(args.means),
                        static_cast<A>(args.batch * args.inner),
                        static_cast<A>(args.eps)};
    run(op, finish_channels<E>, blocks_for(args.channels, kThreads), kThreads, stream, parts,
        static_cast<int>(tiles), args.channels, args.terms, to);
  });
}

}  // namespace braid::cuda
