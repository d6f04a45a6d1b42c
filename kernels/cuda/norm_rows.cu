#include <braid/core/internal/kernel_args/norm.hpp>

#include "cuda/device/math.cuh"
#include "cuda/device/norm_rows.cuh"
#include "cuda/kernels.hpp"

// Normalisation of contiguous rows (layer, group, RMS norm). A row of up to 1024 elements is
// computed by a warp, a longer one by a block.
// Traffic  a row of up to 8192 elements is held in registers: read once, written once. A longer one
//          is read again, likely from a cache.
namespace braid::cuda {

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

}  // namespace braid::cuda
