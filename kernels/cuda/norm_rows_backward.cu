#include <braid/core/internal/kernel_args/norm.hpp>

#include "cuda/device/norm_rows.cuh"
#include "cuda/device/norm_rows_join.cuh"
#include "cuda/kernels.hpp"
#include "cuda/norm_sums.hpp"
#include "simt/ptx.hpp"

// The backward pass of norm_rows.cu.
// Traffic  where each column has weights (layer and RMS norm) and a row fits in registers (up to
//          8192 elements, 4096 of float64), x and dy are read once: each block writes dx of its
//          rows and sums of its rows for the weights' gradients, and the last blocks add the
//          blocks' sums. While a row is computed, cp.async copies the next one: the sums take so
//          many registers that an SM has two blocks for 16-bit dtypes and one for others, too few
//          to hide the latency of the memory. Otherwise x and dy are read once for dx and once for
//          the weights' gradients, and rows that do not fit are read again, likely from a cache.
// Join     up to 8 last blocks each read an eighth of the blocks' sums. Where these are many, a
//          second kernel adds them with all SMs: one block reads about 100 GB/s.
// Order    a block's rows and each sum depend only on the shape and the dtype.
namespace braid::cuda {

/// The inputs and outputs of the backward pass.
template <class E> struct NormRowsBackward {
  using T = typename E::T;
  using A = typename E::A;
  const T* x;
  const T* dy;
  T* dx;
  const A* mean;  // null: the mean is 0, and that of g is not subtracted
  const A* rstd;
  RowWeights<E> weight;
  std::int64_t rows, n;
  bool packs;
};

template <class E, class G>
BRAID_DEVICE void norm_backward_held(const G& group, const NormRowsBackward<E>& p,
                                     std::int64_t row) {
  using A = typename E::A;
  using Held = HeldRow<E, G>;
  const int n = static_cast<int>(p.n);
  const A count = static_cast<A>(p.n), m = p.mean == nullptr ? A(0) : p.mean[row], r = p.rstd[row];
  Held x, g;
  x.load(group, p.x + row * p.n, n, p.packs, A(0));
  g.load(group, p.dy + row * p.n, n, p.packs, A(0));
#pragma unroll
  for (int c = 0; c < Held::kPacks; ++c) {
    if (!Held::reaches(c, n)) continue;
    A w[Held::kWidth];
    p.weight.load(w, row, Held::place(group, c), p.n, A(1));
#pragma unroll
    for (int k = 0; k < Held::kWidth; ++k) {
      g.v[c][k] *= w[k];
      x.v[c][k] = (x.v[c][k] - m) * r;
    }
  }
  const A mean_g =
      p.mean == nullptr ? A(0) : g.sum(group, n, [&](A v, int, int) { return v; }) / count;
  const A mean_gh = g.sum(group, n, [&](A v, int c, int k) { return v * x.v[c][k]; }) / count;
  g.map(n, [&](A v, int c, int k) { return r * (v - mean_g - x.v[c][k] * mean_gh); });
  g.store(group, p.dx + row * p.n, n, p.packs);
}

template <class E, class G>
BRAID_DEVICE void norm_backward_long(const G& group, const NormRowsBackward<E>& p,
                                     std::int64_t row) {
  using A = typename E::A;
  constexpr int width = kWidest<typename E::T>;
  const A count = static_cast<A>(p.n), m = p.mean == nullptr ? A(0) : p.mean[row], r = p.rstd[row];
  const auto both = [&](std::int64_t j, A(&h)[width], A(&g)[width]) {
    A w[width];
    load_row<E>(h, p.x + row * p.n, j, p.n, p.packs, m);
    load_row<E>(g, p.dy + row * p.n, j, p.n, p.packs, A(0));
    p.weight.load(w, row, j, p.n, A(1));
#pragma unroll
    for (int k = 0; k < width; ++k) {
      h[k] = (h[k] - m) * r;
      g[k] *= w[k];
    }
  };
  A part_g = A(0), part_gh = A(0);
  for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < p.n;
       j += G::kSize * width) {
    A h[width], g[width];
    both(j, h, g);
    part_g += tree_sum<width, A>([&](int k) { return g[k]; });
    part_gh += tree_sum<width, A>([&](int k) { return g[k] * h[k]; });
  }
  const A sum_g = group.join(Sum<A>{}, part_g), mean_gh = group.join(Sum<A>{}, part_gh) / count,
          mean_g = p.mean == nullptr ? A(0) : sum_g / count;
  for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < p.n;
       j += G::kSize * width) {
    A h[width], g[width];
    both(j, h, g);
#pragma unroll
    for (int k = 0; k < width; ++k) g[k] = r * (g[k] - mean_g - h[k] * mean_gh);
    store_row<E>(p.dx + row * p.n, j, p.n, p.packs, g);
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads) norm_rows_backward_warps(NormRowsBackward<E> p) {
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread();
       r < p.rows; r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    norm_backward_held<E>(WarpGroup{}, p, r);
}
template <class E>
__global__ void __launch_bounds__(kThreads) norm_rows_backward_blocks(NormRowsBackward<E> p) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    if (p.n <= kBlockRow) norm_backward_held<E>(BlockGroup<A>{part}, p, r);
    else norm_backward_long<E>(BlockGroup<A>{part}, p, r);
  }
}

/// The most blocks among which all rows are split. Each writes two sums for each column.
inline constexpr std::int64_t kMostRowTiles = 256;
/// Elements of a row that a thread holds together with two sums for each of their columns.
template <class E> inline constexpr int kHeldWithSums = sizeof(typename E::A) == 8 ? 16 : kHeld;

/// A row in registers, as HeldRow, but in the stored type: 16-bit numbers take half the registers.
template <class E, class G> struct StoredRow {
  using T = typename E::T;
  static constexpr int kWidth = kWidest<T>, kPacks = kHeldWithSums<E> / kWidth;
  Pack<T, kWidth> v[kPacks];

  static BRAID_DEVICE int place(const G& group, int pack) {
    return (group.rank() + pack * G::kSize) * kWidth;
  }
  // the same for all threads
  static BRAID_DEVICE bool reaches(int pack, int n) { return pack * G::kSize * kWidth < n; }

  /// Elements past the end are 0.
  BRAID_DEVICE void load(const G& group, const T* row, int n, bool packs) {
#pragma unroll
    for (int c = 0; c < kPacks; ++c) {
      const int j = place(group, c);
      if (packs && j < n) {
        v[c] = load_pack<kWidth>(row + j);
      } else {
#pragma unroll
        for (int k = 0; k < kWidth; ++k) v[c].v[k] = j + k < n ? row[j + k] : E::store(0);
      }
    }
  }
};

/// What a thread adds up over its rows: Σ dy h and Σ dy for each of its columns.
template <class E, class G> struct ColumnSums {
  using A = typename E::A;
  using Row = StoredRow<E, G>;
  A weight[Row::kPacks][Row::kWidth] = {}, bias[Row::kPacks][Row::kWidth] = {};
};

/// Sums of two values over a warp.
struct WarpPairs : WarpGroup {
  template <class A> BRAID_DEVICE void join(A& a, A& b, std::int64_t) const {
    a = WarpGroup::join(Sum<A>{}, a);
    b = WarpGroup::join(Sum<A>{}, b);
  }
};
/// Sums of two values over a block. Consecutive rounds use the two halves of `part` in turn, so
/// that each needs one barrier.
template <class A> struct BlockPairs {
  static constexpr int kSize = kThreads;
  A (*part)[2][kWarps];
  BRAID_DEVICE int rank() const { return static_cast<int>(threadIdx.x); }
  BRAID_DEVICE void join(A& a, A& b, std::int64_t round) const {
    WarpPairs{}.join(a, b, round);
    A(&half)[2][kWarps] = part[round & 1];
    if (lane_of_thread() == 0) half[0][warp_of_thread()] = a, half[1][warp_of_thread()] = b;
    __syncthreads();
    a = half[0][lane_of_thread() % kWarps];
    b = half[1][lane_of_thread() % kWarps];
#pragma unroll
    for (int step = kWarps / 2; step > 0; step /= 2) {
      a += __shfl_xor_sync(kFullWarp, a, step);
      b += __shfl_xor_sync(kFullWarp, b, step);
    }
  }
};

/// What a thread has of the next row's x and dy, copied to shared memory while it computes a row.
/// It reads only what it has copied, so this needs no barrier. There is memory for two rows of
/// 16-bit numbers, so that a row stays there for as long as it is computed, and takes no registers.
/// Others are copied to registers first: twice their memory would be more than some GPUs have.
template <class E, class G> struct NextRow {
  using Row = StoredRow<E, G>;
  using Unit = Pack<typename E::T, Row::kWidth>;
  static constexpr bool kTwo = sizeof(typename E::T) == 2;
  static constexpr int kUnits = 2 * Row::kPacks * kThreads;  // of a row
  static constexpr std::size_t kBytes = (kTwo ? 2 : 1) * kUnits * sizeof(Unit);
  Unit* own;  // the first; consecutive ones are kThreads apart, so that a warp's lie side by side

  explicit BRAID_DEVICE NextRow(Unit* of_block) : own(of_block + threadIdx.x) {}
  BRAID_DEVICE void copy(const G& group, const NormRowsBackward<E>& p, std::int64_t row,
                         int from) const {
    const int n = static_cast<int>(p.n);
#pragma unroll
    for (int c = 0; c < Row::kPacks; ++c) {
      if (!Row::reaches(c, n)) continue;
      const int j = Row::place(group, c), bytes = j < n ? 16 : 0;  // the rest becomes 0
      const std::int64_t at = row * p.n + (j < n ? j : 0);
      simt::cp_async16(own + from + 2 * c * kThreads, p.x + at, bytes);
      simt::cp_async16(own + from + (2 * c + 1) * kThreads, p.dy + at, bytes);
    }
    simt::cp_async_commit();
  }
  BRAID_DEVICE void take(int c, int from, Row& x, Row& dy) const {
    x.v[c] = simt::load_vector<Unit>(own + from + 2 * c * kThreads);
    dy.v[c] = simt::load_vector<Unit>(own + from + (2 * c + 1) * kThreads);
  }
};

/// Computes dx of every `step`-th row from `first` on, and adds their terms to `sums`. `packed`
/// says that all rows and the weights may be accessed in packs.
template <bool packed, class E, class G>
BRAID_DEVICE void norm_backward_once(const G& group, const NormRowsBackward<E>& p,
                                     std::int64_t first, std::int64_t end, int step,
                                     const NextRow<E, G>& next, ColumnSums<E, G>& sums) {
  using T = typename E::T;
  using A = typename E::A;
  using Row = StoredRow<E, G>;
  constexpr int width = Row::kWidth;
  constexpr bool two = NextRow<E, G>::kTwo;
  const int n = static_cast<int>(p.n);
  const A count = static_cast<A>(p.n);
  const auto weights = [&](A(&w)[width], int c) {
    const int j = Row::place(group, c);
    if constexpr (packed) {
      Pack<T, width> pack{};
      if (j < n) pack = load_pack<width>(p.weight.p + j);
#pragma unroll
      for (int k = 0; k < width; ++k) w[k] = E::load(pack.v[k]);
    } else {
      p.weight.load(w, 0, j, p.n, A(1));
    }
  };
  if (first >= end) return;
  int left = static_cast<int>(end - first), from = 0;  // where the row is in shared memory
  if constexpr (packed) next.copy(group, p, first, 0);
  A next_mean = p.mean == nullptr ? A(0) : p.mean[first], next_rstd = p.rstd[first];
#pragma unroll 1
  for (std::int64_t row = first; left > 0; row += step) {
    left -= step;
    const A m = next_mean, r = next_rstd;
    Row x, dy;
    if constexpr (packed) {
      simt::cp_async_wait<0>();
      if constexpr (!two) {
#pragma unroll
        for (int c = 0; c < Row::kPacks; ++c)
          if (Row::reaches(c, n)) next.take(c, 0, x, dy);
      }
      if (left > 0) next.copy(group, p, row + step, two ? NextRow<E, G>::kUnits - from : 0);
    } else {
      x.load(group, p.x + row * p.n, n, p.packs);
      dy.load(group, p.dy + row * p.n, n, p.packs);
    }
    if (left > 0) {
      if (p.mean != nullptr) next_mean = p.mean[row + step];
      next_rstd = p.rstd[row + step];
    }
    A sum_g = A(0), sum_gh = A(0);
#pragma unroll
    for (int c = 0; c < Row::kPacks; ++c) {
      if (!Row::reaches(c, n)) continue;
      if constexpr (packed && two) next.take(c, from, x, dy);
      A w[width], g[width], gh[width];
      weights(w, c);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const A d = E::load(dy.v[c].v[k]), h = (E::load(x.v[c].v[k]) - m) * r;
        sums.weight[c][k] += d * h;
        sums.bias[c][k] += d;
        g[k] = d * w[k];
        gh[k] = g[k] * h;
      }
      sum_g += tree_sum<width, A>([&](int k) { return g[k]; });
      sum_gh += tree_sum<width, A>([&](int k) { return gh[k]; });
    }
    group.join(sum_g, sum_gh, row);
    const A mean_g = p.mean == nullptr ? A(0) : sum_g / count, mean_gh = sum_gh / count;
#pragma unroll
    for (int c = 0; c < Row::kPacks; ++c) {
      if (!Row::reaches(c, n)) continue;
      if constexpr (packed && two) next.take(c, from, x, dy);
      A w[width], dx[width];
      weights(w, c);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const A h = (E::load(x.v[c].v[k]) - m) * r;
        dx[k] = r * (E::load(dy.v[c].v[k]) * w[k] - mean_g - h * mean_gh);
      }
      const int j = Row::place(group, c);
      if (!packed || j < n) store_row<E>(p.dx + row * p.n, j, n, packed || p.packs, dx);
    }
    if constexpr (packed && two) from = NextRow<E, G>::kUnits - from;
  }
}

/// Blocks of an SM that compute rows and hold sums: 128 registers a thread are enough for two.
template <class E, bool packed>
inline constexpr int kSumBlocks = packed && sizeof(typename E::T) == 2 ? 2 : 1;

/// Block t has rows [t * tile, (t + 1) * tile) and writes Σ dy h to sums_of.parts[t][0] and Σ dy to
/// sums_of.parts[t][1]. Each of its warps has every eighth row.
template <class E, bool packed>
__global__ void __launch_bounds__(kThreads, kSumBlocks<E, packed>)
    norm_rows_gradients_warps(NormRowsBackward<E> p, std::int64_t tile, BlockSums<E> sums_of) {
  using A = typename E::A;
  using Row = StoredRow<E, WarpPairs>;
  constexpr int columns = 32 * Row::kWidth;
  using Next = NextRow<E, WarpPairs>;
  SIMT_SHARED(A, part, [kWarps][2][columns]);
  SIMT_DYN_SHARED(typename Next::Unit, ahead);
  const WarpPairs group;
  const std::int64_t begin = blockIdx.x * tile, end = begin + tile < p.rows ? begin + tile : p.rows;
  ColumnSums<E, WarpPairs> sums;
  norm_backward_once<packed, E>(group, p, begin + warp_of_thread(), end, kWarps, Next(ahead), sums);
  A* const to = sums_of.parts + blockIdx.x * 2 * p.n;
#pragma unroll
  for (int c = 0; c < Row::kPacks; ++c) {
    if (!Row::reaches(c, static_cast<int>(p.n))) continue;
#pragma unroll
    for (int k = 0; k < Row::kWidth; ++k) {
      part[warp_of_thread()][0][group.rank() * Row::kWidth + k] = sums.weight[c][k];
      part[warp_of_thread()][1][group.rank() * Row::kWidth + k] = sums.bias[c][k];
    }
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.x); j < columns && c * columns + j < p.n;
         j += kThreads) {
      to[c * columns + j] = tree_sum<kWarps, A>([&](int w) { return part[w][0][j]; });
      to[p.n + c * columns + j] = tree_sum<kWarps, A>([&](int w) { return part[w][1][j]; });
    }
    __syncthreads();  // before the next pack's sums, and before the other blocks are told
  }
  join_sums<packed>(sums_of, static_cast<int>(p.n));
}
/// The same for longer rows, which the whole block computes one after the other.
template <class E, bool packed>
__global__ void __launch_bounds__(kThreads, kSumBlocks<E, packed>)
    norm_rows_gradients_blocks(NormRowsBackward<E> p, std::int64_t tile, BlockSums<E> sums_of) {
  using A = typename E::A;
  using Group = BlockPairs<A>;
  using Row = StoredRow<E, Group>;
  using Next = NextRow<E, Group>;
  SIMT_SHARED(A, part, [2][2][kWarps]);
  SIMT_DYN_SHARED(typename Next::Unit, ahead);
  const Group group{part};
  const std::int64_t begin = blockIdx.x * tile, end = begin + tile < p.rows ? begin + tile : p.rows;
  ColumnSums<E, Group> sums;
  norm_backward_once<packed, E>(group, p, begin, end, 1, Next(ahead), sums);
  A* const to = sums_of.parts + blockIdx.x * 2 * p.n;
#pragma unroll
  for (int c = 0; c < Row::kPacks; ++c)
#pragma unroll
    for (int k = 0; k < Row::kWidth; ++k) {
      const int j = Row::place(group, c) + k;
      if (j >= p.n) continue;
      to[j] = sums.weight[c][k];
      to[p.n + j] = sums.bias[c][k];
    }
  __syncthreads();  // one thread tells the last block of all these sums
  join_sums<packed>(sums_of, static_cast<int>(p.n));
}

/// dx, dweight and dbias in one pass, for rows that fit in registers.
template <class E>
void gradients_of_rows(const NormRowsBackwardArgs& args, const NormRowsBackward<E>& p, bool warps,
                       Stream& stream) {
  using T = typename E::T;
  using A = typename E::A;
  const std::int64_t each = warps ? kWarps : 1;  // rows that a block computes at a time
  const std::int64_t tile = ((args.rows - 1) / (kMostRowTiles * each) + 1) * each;
  const std::int64_t tiles = (args.rows - 1) / tile + 1;
  const Scratch scratch(static_cast<std::size_t>((tiles + kWarps) * 2 * args.n) * sizeof(A),
                        stream);
  A* const parts = static_cast<A*>(scratch.data());
  const bool packed = p.packs && p.weight.packs;
  const bool joins = tiles * args.n <= kMostJoined * (packed ? kWidest<A> : 1);
  const BlockSums<E> sums{parts, parts + tiles * 2 * args.n, joins ? tickets_of(stream) : nullptr,
                          static_cast<T*>(args.dweight), static_cast<T*>(args.dbias)};
  const auto launch = [&](auto kernel, std::size_t shared) {
    run_with(shared, "norm_rows_backward", kernel, static_cast<unsigned>(tiles), kThreads, stream,
             p, tile, sums);
  };
  if (!packed)
    launch(warps ? norm_rows_gradients_warps<E, false> : norm_rows_gradients_blocks<E, false>, 0);
  else
    launch(warps ? norm_rows_gradients_warps<E, true> : norm_rows_gradients_blocks<E, true>,
           NextRow<E, WarpPairs>::kBytes);
  if (joins) return;
  run("norm_rows_backward", norm_rows_join<E>, dim3(static_cast<unsigned>((args.n + 31) / 32), 2),
      kThreads, stream, parts, static_cast<int>(tiles), args.n, sums.dweight, sums.dbias);
}

void norm_rows_backward(const NormRowsBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype))
    fail_dtype("norm_rows_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  check_runs("norm_rows_backward", args.n, args.inner);
  bool with_sums = args.dweight != nullptr || args.dbias != nullptr;
  if (args.dx != nullptr)
    (void)with_floating(args.dtype, [&]<class E>() {
      using T = typename E::T;
      using A = typename E::A;
      const T* x = static_cast<const T*>(args.x);
      const T* dy = static_cast<const T*>(args.dy);
      T* dx = static_cast<T*>(args.dx);
      const NormRowsBackward<E> p{x,
                                  dy,
                                  dx,
                                  args.center ? static_cast<const A*>(args.mean) : nullptr,
                                  static_cast<const A*>(args.rstd),
                                  weights_of<E>(args, args.weight),
                                  args.rows,
                                  args.n,
                                  rows_in_packs(args.n, x, dy, dx)};
      constexpr std::int64_t fit = kHeldWithSums<E>;
      if (with_sums && args.groups == 1 && args.inner == 1 && args.n <= fit * kThreads) {
        with_sums = false;
        return gradients_of_rows<E>(args, p, args.n <= fit * 32, stream);
      }
      const bool warps = args.n <= kWarpRow;
      run("norm_rows_backward", warps ? norm_rows_backward_warps<E> : norm_rows_backward_blocks<E>,
          blocks_for(args.rows, warps ? kWarps : 1), kThreads, stream, p);
    });
  if (!with_sums) return;
  channel_sums("norm_rows_backward",
               ChannelSums{.dtype = args.dtype,
                           .terms = ChannelTerms::gradients,
                           .x = args.x,
                           .dy = args.dy,
                           .mean = args.center ? const_cast<void*>(args.mean) : nullptr,
                           .rstd = const_cast<void*>(args.rstd),
                           .var = nullptr,
                           .weight = args.dweight,
                           .bias = args.dbias,
                           .means = nullptr,
                           .eps = 0,
                           .batch = args.rows / args.groups,
                           .channels = args.groups * (args.n / args.inner),
                           .inner = args.inner,
                           .groups = args.groups},
               stream);
}

}  // namespace braid::cuda
