#include "cuda/norm_sums.hpp"

#include "cuda/device/element.cuh"
#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/row_sum.cuh"
#include "cuda/device/tickets.cuh"

// Two sums for each channel, in one launch (above 32,768 channels a memset precedes it): each block
// sums a tile of the batch, and for each 32 channels the last block joins the tiles as a tree, in a
// fixed order.
// Traffic  x (and dy) are read once.
namespace braid::cuda {

inline constexpr int kWarpTiles = 8;  // that a warp of the last block joins
inline constexpr std::int64_t kMostTiles = kWarps * kWarpTiles;
inline constexpr unsigned kGroup = 32;  // channels that the last block of them joins

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

/// The sums of tiles, and the outputs.
template <class E> struct Results {
  using T = typename E::T;
  using A = typename E::A;
  A* parts;            // [tiles][2][channels]
  unsigned* counters;  // of each group of channels
  A* mean;
  A* rstd;
  A* var;
  T* weight;
  T* bias;
  A* means;
  A count, eps;
  int tiles;

  BRAID_DEVICE void write(const Terms<E>& in, std::int64_t c, Two<A> sum) const {
    if (in.terms == ChannelTerms::elements) {
      mean[c] = sum.first / count;
    } else if (in.terms == ChannelTerms::deviations) {
      const A v = sum.first / count;
      var[c] = v;
      rstd[c] = A(1) / sqrt_of(v + eps);
    } else {
      if (bias != nullptr) bias[c] = E::store(sum.first);
      if (weight != nullptr) weight[c] = E::store(sum.second);
      if (means != nullptr) {
        means[c] = sum.first / count;
        means[in.channels + c] = sum.second / count;
      }
    }
  }
};

/// Σ of the first `count` of N numbers, count >= 1, as a tree of neighbours.
template <int N, class A> BRAID_DEVICE A join_first(const A* numbers, int count) {
  if constexpr (N == 1) {
    return numbers[0];
  } else {
    const A low = join_first<N / 2>(numbers, count);
    return count > N / 2 ? low + join_first<N / 2>(numbers + N / 2, count - N / 2) : low;
  }
}
/// The same of numbers[t * step] for the first eight t. Four are loaded together: the addresses of
/// eight would take more registers than the loops of the kernels.
template <class A> BRAID_DEVICE A join_eight(const A* numbers, std::int64_t step, int count) {
  A total = A(0);
#pragma unroll 1
  for (int from = 0; from < count && from < 8; from += 4) {
    A held[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      held[t] = from + t < count ? *numbers : A(0);
      numbers += step;
    }
    const A four = join_first<4>(held, count - from);
    total = from == 0 ? four : total + four;
  }
  return total;
}

template <class A> using Parts = A[kWarps][kGroup];
/// Joins the tiles of a group of channels in the last of the blocks that have summed some of it.
/// Requires that thread 0 has written the block's sums, or that a barrier followed them.
template <class E>
BRAID_DEVICE void join_tiles(const Terms<E>& in, const Results<E>& to, std::int64_t group,
                             unsigned blocks, Parts<typename E::A>& first,
                             Parts<typename E::A>& second) {
  using A = typename E::A;
  if (!arrives_last(to.counters + group, blocks)) return;
  const int lane = lane_of_thread(), warp = warp_of_thread(), count = to.tiles - warp * kWarpTiles;
  const std::int64_t c = group * kGroup + lane, step = 2 * in.channels;
  const bool two = in.terms == ChannelTerms::gradients;
  if (c < in.channels && count > 0) {
    const A* const from = to.parts + warp * kWarpTiles * step + c;
    first[warp][lane] = join_eight<A>(from, step, count);
    if (two) second[warp][lane] = join_eight<A>(from + in.channels, step, count);
  }
  __syncthreads();
  if (warp != 0 || c >= in.channels) return;
  const int warps = (to.tiles - 1) / kWarpTiles + 1;
  to.write(in, c,
           {join_eight(&first[0][lane], kGroup, warps),
            two ? join_eight(&second[0][lane], kGroup, warps) : A(0)});
}

/// inner == 1: each block has 32 channels and a tile of the batch; each of its warps adds every
/// eighth row. The bounds keep the join from taking registers that the loop does without.
template <class E>
__global__ void __launch_bounds__(kThreads, (sizeof(typename E::A) == 8 ? 4 : 5))
    sum_columns(Terms<E> in, Results<E> to) {
  using A = typename E::A;
  SIMT_SHARED(A, first, [kWarps][kGroup]);
  SIMT_SHARED(A, second, [kWarps][kGroup]);
  const int lane = lane_of_thread(), warp = warp_of_thread();
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kGroup + lane,
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
  if (warp == 0 && c < in.channels) {
    A* const part = to.parts + (static_cast<std::int64_t>(blockIdx.y) * 2) * in.channels + c;
    part[0] = tree_sum<kWarps, A>([&](int w) { return first[w][lane]; });
    part[in.channels] = tree_sum<kWarps, A>([&](int w) { return second[w][lane]; });
  }
  __syncthreads();  // one thread tells the last block of all these sums
  join_tiles(in, to, blockIdx.x, gridDim.y, first, second);
}

/// inner > 1: one channel and a tile of the batch for each block. In float64 the join takes 61
/// registers: an SM has 32 warps (48 before), with 8 to 16 loads of each in flight.
template <class E>
__global__ void __launch_bounds__(kThreads, (sizeof(typename E::A) == 8 ? 4 : 6))
    sum_runs(Terms<E> in, Results<E> to) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  SIMT_SHARED(A, first, [kWarps][kGroup]);
  SIMT_SHARED(A, second, [kWarps][kGroup]);
  const BlockGroup<A> group{part};
  const std::int64_t c = blockIdx.x, begin = static_cast<std::int64_t>(blockIdx.y) * in.rows;
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
    A* const parts = to.parts + (static_cast<std::int64_t>(blockIdx.y) * 2) * in.channels + c;
    parts[0] = sum.first;
    parts[in.channels] = sum.second;
  }
  const unsigned of_group = blockIdx.x / kGroup, rest = gridDim.x - of_group * kGroup;
  join_tiles(in, to, of_group, gridDim.y * (rest < kGroup ? rest : kGroup), first, second);
}

void channel_sums(const char* op, const ChannelSums& args, Stream& stream) {
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    std::int64_t rows = args.inner == 1 ? 4 * kWarps : 1;
    while (rows * kMostTiles < args.batch) rows *= 2;
    const std::int64_t tiles = (args.batch + rows - 1) / rows;
    const std::int64_t groups = (args.channels - 1) / kGroup + 1;
    const std::size_t sums = static_cast<std::size_t>(tiles * 2 * args.channels) * sizeof(A);
    // The stream's counters need no launch that clears them.
    const bool few = groups <= kTickets;
    const std::size_t counters = few ? 0 : static_cast<std::size_t>(groups) * sizeof(unsigned);
    const Scratch scratch(sums + counters, stream);
    auto* const own = reinterpret_cast<unsigned*>(static_cast<char*>(scratch.data()) + sums);
    if (!few) set_zero(op, own, counters, stream);
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
    const Results<E> to{static_cast<A*>(scratch.data()),
                        few ? tickets_of(stream) : own,
                        static_cast<A*>(args.mean),
                        static_cast<A*>(args.rstd),
                        static_cast<A*>(args.var),
                        static_cast<T*>(args.weight),
                        static_cast<T*>(args.bias),
                        static_cast<A*>(args.means),
                        static_cast<A>(args.batch * args.inner),
                        static_cast<A>(args.eps),
                        static_cast<int>(tiles)};
    const bool columns = args.inner == 1;
    const auto across = static_cast<unsigned>(columns ? groups : args.channels);
    run(op, columns ? sum_columns<E> : sum_runs<E>, dim3(across, static_cast<unsigned>(tiles)),
        kThreads, stream, in, to);
  });
}

}  // namespace braid::cuda
