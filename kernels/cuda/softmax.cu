#include <braid/core/internal/kernel_args/softmax.hpp>

#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/softmax_long.hpp"

// Softmax and log-softmax of contiguous rows, and their gradients. A row of up to 1024 elements is
// computed by a warp, a longer one by a block. x and y may be the same memory.
// Traffic  a row of up to 8192 elements is held in registers: it is read once and written once.
//          Longer ones are in softmax_long.cu.
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
void softmax(const SoftmaxArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("softmax", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  if (args.n > kBlockRow) return softmax_long(args, stream);
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    const bool packs = rows_in_packs(args.n, x, y);
    if (args.n <= kWarpRow)
      run("softmax", softmax_warps<E>, blocks_for(args.rows, kWarps), kThreads, stream, x, y,
          args.rows, args.n, packs, args.log);
    else
      run("softmax", softmax_blocks<E>, blocks_for(args.rows, 1), kThreads, stream, x, y, args.rows,
          args.n, packs, args.log);
  });
}

void softmax_backward(const SoftmaxBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype))
    fail_dtype("softmax_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  if (args.n > kBlockRow) return softmax_backward_long(args, stream);
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
    else launch(softmax_backward_blocks<E>, blocks_for(args.rows, 1));
  });
}

}  // namespace braid::cuda
