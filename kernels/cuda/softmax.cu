#include "cuda/device/group.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Softmax and log-softmax of dense rows, and their gradients: a warp for a row of up to 1024 elements, a block for a longer one. x and y may be one.
// Traffic  a row is read three times, the second and third time from the caches, and written once.
namespace braid::cuda {

inline constexpr std::int64_t kWarpRow = 1024;

/// A row of only -inf, or with a NaN or +inf, becomes NaN: its sum is one.
template <class E, class G>
BRAID_DEVICE void softmax_row(const G& group, const typename E::T* x, typename E::T* y, std::int64_t n, bool log) {
  using A = typename E::A;
  const A max = group_max<A>(group, n, [&](std::int64_t j) { return E::load(x[j]); });
  const A sum = group_sum<A>(group, n, [&](std::int64_t j) { return exp_of(E::load(x[j]) - max); });
  const A shift = log ? log_of(sum) : A(0), factor = A(1) / sum;
  for (std::int64_t j = group.rank(); j < n; j += G::kSize) {
    const A v = E::load(x[j]) - max;
    y[j] = E::store(log ? v - shift : exp_of(v) * factor);
  }
}

template <class E, class G>
BRAID_DEVICE void softmax_backward_row(const G& group, const typename E::T* y, const typename E::T* dy, typename E::T* dx, std::int64_t n, bool log) {
  using A = typename E::A;
  const A sum = group_sum<A>(group, n, [&](std::int64_t j) { return log ? E::load(dy[j]) : E::load(y[j]) * E::load(dy[j]); });
  for (std::int64_t j = group.rank(); j < n; j += G::kSize) {
    const A out = E::load(y[j]), gradient = E::load(dy[j]);
    dx[j] = E::store(log ? gradient - exp_of(out) * sum : out * (gradient - sum));
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads) softmax_warps(const typename E::T* x, typename E::T* y, std::int64_t rows, std::int64_t n, bool log) {
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); r < rows; r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    softmax_row<E>(WarpGroup{}, x + r * n, y + r * n, n, log);
}

template <class E>
__global__ void __launch_bounds__(kThreads) softmax_blocks(const typename E::T* x, typename E::T* y, std::int64_t rows, std::int64_t n, bool log) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) softmax_row<E>(BlockGroup<A>{part}, x + r * n, y + r * n, n, log);
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_warps(const typename E::T* y, const typename E::T* dy, typename E::T* dx, std::int64_t rows, std::int64_t n, bool log) {
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); r < rows; r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    softmax_backward_row<E>(WarpGroup{}, y + r * n, dy + r * n, dx + r * n, n, log);
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_blocks(const typename E::T* y, const typename E::T* dy, typename E::T* dx, std::int64_t rows, std::int64_t n, bool log) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) softmax_backward_row<E>(BlockGroup<A>{part}, y + r * n, dy + r * n, dx + r * n, n, log);
}

void softmax(const SoftmaxArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("softmax", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    if (args.n <= kWarpRow) run("softmax", softmax_warps<E>, blocks_for(args.rows, kWarps), kThreads, stream, x, y, args.rows, args.n, args.log);
    else run("softmax", softmax_blocks<E>, blocks_for(args.rows, 1), kThreads, stream, x, y, args.rows, args.n, args.log);
  });
}

void softmax_backward(const SoftmaxBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("softmax_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* y = static_cast<const T*>(args.y);
    const T* dy = static_cast<const T*>(args.dy);
    T* dx = static_cast<T*>(args.dx);
    if (args.n <= kWarpRow)
      run("softmax_backward", softmax_backward_warps<E>, blocks_for(args.rows, kWarps), kThreads, stream, y, dy, dx, args.rows, args.n, args.log);
    else run("softmax_backward", softmax_backward_blocks<E>, blocks_for(args.rows, 1), kThreads, stream, y, dy, dx, args.rows, args.n, args.log);
  });
}

}  // namespace braid::cuda
