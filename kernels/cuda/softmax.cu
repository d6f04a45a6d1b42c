#include <braid/core/kernel_args/softmax.hpp>

#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Softmax and log-softmax of contiguous rows, and their gradients. A row of up to 1024 elements is
// computed by a warp, a longer one by a block. x and y may be the same memory.
// Traffic  a row of up to 8192 elements is held in registers: it is read once and written once. A
//          longer one is read twice, the second time likely from a cache.
namespace braid::cuda {

/// A row of only -inf, or with a NaN or +inf, becomes NaN, because its sum is NaN.
template <class E, class G>
BRAID_DEVICE void softmax_held(const G& group, const typename E::T* x, typename E::T* y, int n,
                               bool packs, bool log) {
  using A = typename E::A;
  HeldRow<E, G> row;
  row.load(group, x, n, packs, lowest<A>());
  const A max = row.max(group, n);
  row.map(n, [&](A v, int, int) { return log ? v - max : exp_of(v - max); });
  const A sum = row.sum(group, n, [&](A v, int, int) { return log ? exp_of(v) : v; });
  const A shift = log ? log_of(sum) : A(0), factor = log ? A(1) : A(1) / sum;
  row.map(n, [&](A v, int, int) { return log ? v - shift : v * factor; });
  row.store(group, y, n, packs);
}

template <class E, class G>
BRAID_DEVICE void softmax_long(const G& group, const typename E::T* x, typename E::T* y,
                               std::int64_t n, bool packs, bool log) {
  using A = typename E::A;
  constexpr int width = kWidest<typename E::T>;
  const auto [max, sum] = max_and_sum<E>(group, x, n, packs);
  const A shift = log ? log_of(sum) : A(0), factor = A(1) / sum;
  for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < n;
       j += G::kSize * width) {
    A v[width];
    load_row<E>(v, x, j, n, packs, A(0));
#pragma unroll
    for (int k = 0; k < width; ++k) v[k] = log ? (v[k] - max) - shift : exp_of(v[k] - max) * factor;
    store_row<E>(y, j, n, packs, v);
  }
}

template <class E, class G>
BRAID_DEVICE void softmax_backward_held(const G& group, const typename E::T* y,
                                        const typename E::T* dy, typename E::T* dx, int n,
                                        bool packs, bool log) {
  using A = typename E::A;
  HeldRow<E, G> out, gradient;
  out.load(group, y, n, packs, A(0));
  gradient.load(group, dy, n, packs, A(0));
  const A sum =
      gradient.sum(group, n, [&](A g, int c, int k) { return log ? g : out.v[c][k] * g; });
  gradient.map(n, [&](A g, int c, int k) {
    return log ? g - exp_of(out.v[c][k]) * sum : out.v[c][k] * (g - sum);
  });
  gradient.store(group, dx, n, packs);
}

template <class E, class G>
BRAID_DEVICE void softmax_backward_long(const G& group, const typename E::T* y,
                                        const typename E::T* dy, typename E::T* dx, std::int64_t n,
                                        bool packs, bool log) {
  using A = typename E::A;
  constexpr int width = kWidest<typename E::T>;
  const auto both = [&](std::int64_t j, A(&out)[width], A(&gradient)[width]) {
    load_row<E>(out, y, j, n, packs, A(0));
    load_row<E>(gradient, dy, j, n, packs, A(0));
  };
  A part[2] = {A(0), A(0)};
  for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < n;
       j += 2 * G::kSize * width) {
    A out[2][width], gradient[2][width];
    both(j, out[0], gradient[0]);
    both(j + G::kSize * width, out[1], gradient[1]);
#pragma unroll
    for (int c = 0; c < 2; ++c)
      part[c] += tree_sum<width, A>(
          [&](int k) { return log ? gradient[c][k] : out[c][k] * gradient[c][k]; });
  }
  const A sum = group.join(Sum<A>{}, part[0] + part[1]);
  for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < n;
       j += G::kSize * width) {
    A out[width], gradient[width];
    both(j, out, gradient);
#pragma unroll
    for (int k = 0; k < width; ++k)
      gradient[k] = log ? gradient[k] - exp_of(out[k]) * sum : out[k] * (gradient[k] - sum);
    store_row<E>(dx, j, n, packs, gradient);
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    softmax_warps(const typename E::T* x, typename E::T* y, std::int64_t rows, int n, bool packs,
                  bool log) {
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); r < rows;
       r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    softmax_held<E>(WarpGroup{}, x + r * n, y + r * n, n, packs, log);
}
template <class E>
__global__ void __launch_bounds__(kThreads)
    softmax_blocks(const typename E::T* x, typename E::T* y, std::int64_t rows, int n, bool packs,
                   bool log) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x)
    softmax_held<E>(BlockGroup<A>{part}, x + r * n, y + r * n, n, packs, log);
}
template <class E>
__global__ void __launch_bounds__(kThreads)
    softmax_long_rows(const typename E::T* x, typename E::T* y, std::int64_t rows, std::int64_t n,
                      bool packs, bool log) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x)
    softmax_long<E>(BlockGroup<A>{part}, x + r * n, y + r * n, n, packs, log);
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_warps(const typename E::T* y, const typename E::T* dy, typename E::T* dx,
                           std::int64_t rows, int n, bool packs, bool log) {
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); r < rows;
       r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    softmax_backward_held<E>(WarpGroup{}, y + r * n, dy + r * n, dx + r * n, n, packs, log);
}
template <class E>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_blocks(const typename E::T* y, const typename E::T* dy, typename E::T* dx,
                            std::int64_t rows, int n, bool packs, bool log) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x)
    softmax_backward_held<E>(BlockGroup<A>{part}, y + r * n, dy + r * n, dx + r * n, n, packs, log);
}
template <class E>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_long_rows(const typename E::T* y, const typename E::T* dy, typename E::T* dx,
                               std::int64_t rows, std::int64_t n, bool packs, bool log) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x)
    softmax_backward_long<E>(BlockGroup<A>{part}, y + r * n, dy + r * n, dx + r * n, n, packs, log);
}

void softmax(const SoftmaxArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("softmax", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    const bool packs = rows_in_packs(args.n, x, y);
    const unsigned a_block = blocks_for(args.rows, 1);
    if (args.n <= kWarpRow)
      run("softmax", softmax_warps<E>, blocks_for(args.rows, kWarps), kThreads, stream, x, y,
          args.rows, args.n, packs, args.log);
    else if (args.n <= kBlockRow)
      run("softmax", softmax_blocks<E>, a_block, kThreads, stream, x, y, args.rows, args.n, packs,
          args.log);
    else
      run("softmax", softmax_long_rows<E>, a_block, kThreads, stream, x, y, args.rows, args.n,
          packs, args.log);
  });
}

void softmax_backward(const SoftmaxBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype))
    fail_dtype("softmax_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* y = static_cast<const T*>(args.y);
    const T* dy = static_cast<const T*>(args.dy);
    T* dx = static_cast<T*>(args.dx);
    const bool packs = rows_in_packs(args.n, y, dy, dx);
    const auto launch = [&](auto kernel, unsigned blocks) {
      run("softmax_backward", kernel, blocks, kThreads, stream, y, dy, dx, args.rows, args.n, packs,
          args.log);
    };
    if (args.n <= kWarpRow) launch(softmax_backward_warps<E>, blocks_for(args.rows, kWarps));
    else if (args.n <= kBlockRow) launch(softmax_backward_blocks<E>, blocks_for(args.rows, 1));
    else launch(softmax_backward_long_rows<E>, blocks_for(args.rows, 1));
  });
}

}  // namespace braid::cuda
