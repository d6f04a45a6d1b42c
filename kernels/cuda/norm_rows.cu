#include <braid/core/kernel_args/norm.hpp>

#include "cuda/device/math.cuh"
#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/norm_sums.hpp"

// Normalisation of contiguous rows (layer, group, RMS norm). A row of up to 1024 elements is
// computed by a warp, a longer one by a block.
// Traffic  a row of up to 8192 elements is held in registers: read once, written once. A longer one
//          is read again, likely from a cache. Backward, x and dy are read once for dx and once for
//          the weights' gradients.
namespace braid::cuda {

/// A row's weights: one for each `inner` elements, or `rest` if there are none. Rows with inner > 1
/// have less than 2^31 elements (checked), because a 64-bit division is slow.
template <class E> struct RowWeights {
  const typename E::T* p;
  std::int64_t groups, count, inner;
  bool packs;
  template <int N>
  BRAID_DEVICE void load(typename E::A (&to)[N], std::int64_t row, std::int64_t j, std::int64_t n,
                         typename E::A rest) const {
    if (p == nullptr) {
#pragma unroll
      for (int v = 0; v < N; ++v) to[v] = rest;
      return;
    }
    const typename E::T* const of_row = groups == 1 ? p : p + row % groups * count;
    if (inner == 1) return load_row<E>(to, of_row, j, n, packs, rest);
#pragma unroll
    for (int v = 0; v < N; ++v)
      to[v] =
          j + v < n
              ? E::load(
                    of_row[static_cast<std::uint32_t>(j + v) / static_cast<std::uint32_t>(inner)])
              : rest;
  }
};

/// The inputs and outputs of the forward pass.
template <class E> struct NormRows {
  using T = typename E::T;
  using A = typename E::A;
  const T* x;
  T* y;
  A* mean;  // null: the mean is 0
  A* rstd;
  RowWeights<E> weight, bias;
  std::int64_t rows, n;
  A eps;
  bool packs;

  template <class G>
  BRAID_DEVICE void write_statistics(const G& group, std::int64_t row, A m, A r) const {
    if (group.rank() != 0) return;
    if (mean != nullptr) mean[row] = m;
    rstd[row] = r;
  }
  /// (v - m) r weight + bias for a pack.
  template <int N>
  BRAID_DEVICE void apply(A (&v)[N], std::int64_t row, std::int64_t j, A m, A r) const {
    A w[N], b[N];
    weight.load(w, row, j, n, A(1));
    bias.load(b, row, j, n, A(0));
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = (v[k] - m) * r * w[k] + b[k];
  }
};

template <class E, class G>
BRAID_DEVICE void norm_held(const G& group, const NormRows<E>& p, std::int64_t row) {
  using A = typename E::A;
  using Held = HeldRow<E, G>;
  const int n = static_cast<int>(p.n);
  const A count = static_cast<A>(p.n);
  Held held;
  held.load(group, p.x + row * p.n, n, p.packs, A(0));
  const A m =
      p.mean == nullptr ? A(0) : held.sum(group, n, [&](A v, int, int) { return v; }) / count;
  const A squares = held.sum(group, n, [&](A v, int c, int k) {
    return Held::place(group, c) + k < n ? (v - m) * (v - m) : A(0);
  });
  const A r = A(1) / sqrt_of(squares / count + p.eps);
  p.write_statistics(group, row, m, r);
#pragma unroll
  for (int c = 0; c < Held::kPacks; ++c)
    if (Held::reaches(c, n)) p.apply(held.v[c], row, Held::place(group, c), m, r);
  held.store(group, p.y + row * p.n, n, p.packs);
}

template <class E, class G>
BRAID_DEVICE void norm_long(const G& group, const NormRows<E>& p, std::int64_t row) {
  using A = typename E::A;
  constexpr int width = kWidest<typename E::T>;
  const typename E::T* const x = p.x + row * p.n;
  const A count = static_cast<A>(p.n);
  const auto total = [&](A m, bool squares) {
    A part = A(0);
    for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < p.n;
         j += G::kSize * width) {
      A v[width];
      load_row<E>(v, x, j, p.n, p.packs, m);
      part += tree_sum<width, A>([&](int k) { return squares ? (v[k] - m) * (v[k] - m) : v[k]; });
    }
    return group.join(Sum<A>{}, part);
  };
  const A m = p.mean == nullptr ? A(0) : total(A(0), false) / count;
  const A r = A(1) / sqrt_of(total(m, true) / count + p.eps);
  p.write_statistics(group, row, m, r);
  for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < p.n;
       j += G::kSize * width) {
    A v[width];
    load_row<E>(v, x, j, p.n, p.packs, A(0));
    p.apply(v, row, j, m, r);
    store_row<E>(p.y + row * p.n, j, p.n, p.packs, v);
  }
}

template <class E> __global__ void __launch_bounds__(kThreads) norm_rows_warps(NormRows<E> p) {
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread();
       r < p.rows; r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    norm_held<E>(WarpGroup{}, p, r);
}
template <class E> __global__ void __launch_bounds__(kThreads) norm_rows_blocks(NormRows<E> p) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    if (p.n <= kBlockRow) norm_held<E>(BlockGroup<A>{part}, p, r);
    else norm_long<E>(BlockGroup<A>{part}, p, r);
  }
}

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

template <class E, class Args> RowWeights<E> weights_of(const Args& args, const void* p) {
  const auto* at = static_cast<const typename E::T*>(p);
  return {at, args.groups, args.n / args.inner, args.inner,
          at != nullptr && args.inner == 1 && rows_in_packs(args.n, at)};
}

void check_runs(const char* op, std::int64_t n, std::int64_t inner) {
  if (inner > 1 && n > INT32_MAX) fail_size(op, "a group of less than 2^31 elements", n);
}

void norm_rows(const NormRowsArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("norm_rows", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  check_runs("norm_rows", args.n, args.inner);
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    const NormRows<E> p{x,
                        y,
                        args.center ? static_cast<A*>(args.mean) : nullptr,
                        static_cast<A*>(args.rstd),
                        weights_of<E>(args, args.weight),
                        weights_of<E>(args, args.bias),
                        args.rows,
                        args.n,
                        static_cast<A>(args.eps),
                        rows_in_packs(args.n, x, y)};
    const bool warps = args.n <= kWarpRow;
    run("norm_rows", warps ? norm_rows_warps<E> : norm_rows_blocks<E>,
        blocks_for(args.rows, warps ? kWarps : 1), kThreads, stream, p);
  });
}

void norm_rows_backward(const NormRowsBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype))
    fail_dtype("norm_rows_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  check_runs("norm_rows_backward", args.n, args.inner);
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
      const bool warps = args.n <= kWarpRow;
      run("norm_rows_backward", warps ? norm_rows_backward_warps<E> : norm_rows_backward_blocks<E>,
          blocks_for(args.rows, warps ? kWarps : 1), kThreads, stream, p);
    });
  if (args.dweight == nullptr && args.dbias == nullptr) return;
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
