#include "cuda/device/reduce.cuh"
#include "cuda/device/report.cuh"
#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Cross entropy of dense logits with class labels, fused: no probabilities are stored. A warp for a row of up to 1024 classes, a block for a longer one.
// Traffic  the logits are read once, forward and backward.
// Labels   outside [0, n) are reported (runtime/device_errors.hpp); the row's loss and gradient are NaN.
namespace braid::cuda {

struct Labels {
  const std::int64_t* p;
  std::int64_t stride;
  FaultSite site;
  /// The label of a row, or -1 after a report.
  BRAID_DEVICE std::int64_t of(std::int64_t row, std::int64_t n, bool reports) const {
    const std::int64_t label = p[row * stride];
    if (label >= 0 && label < n) return label;
    if (reports) report(site, DeviceFault::index, 0, n, label, row);
    return -1;
  }
};
Labels make_labels(const char* op, const std::int64_t* labels, std::int64_t stride, Stream& stream) {
  return {labels, stride, fault_site(device_error_record(stream), op, "labels")};
}

/// lse[row] and loss[row] of one row.
template <class E, class G>
BRAID_DEVICE void loss_row(const G& group, const typename E::T* x, std::int64_t row, std::int64_t n, bool packs, const Labels& labels, typename E::A* lse,
                           typename E::A* loss) {
  using A = typename E::A;
  const MaxAndSum<A> all = max_and_sum<E>(group, x, n, packs);
  if (group.rank() != 0) return;
  const A log = log_of(all.sum);
  const std::int64_t label = labels.of(row, n, true);
  lse[row] = all.max + log;
  // The difference first: it is exact where both are large and near. A label of -1 gives NaN.
  loss[row] = label < 0 ? highest<A>() - highest<A>() : (all.max - E::load(x[label])) + log;
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_warps(const typename E::T* x, Labels labels, typename E::A* lse, typename E::A* loss, std::int64_t rows, std::int64_t n, bool packs) {
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); r < rows; r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    loss_row<E>(WarpGroup{}, x + r * n, r, n, packs, labels, lse, loss);
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_blocks(const typename E::T* x, Labels labels, typename E::A* lse, typename E::A* loss, std::int64_t rows, std::int64_t n, bool packs) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) loss_row<E>(BlockGroup<A>{part}, x + r * n, r, n, packs, labels, lse, loss);
}

/// `first` of `step` threads takes part of a row. dx may be x: each element is read and written by one thread.
template <class E>
BRAID_DEVICE void gradient_row(const typename E::T* x, typename E::T* dx, std::int64_t row, std::int64_t n, bool packs, const Labels& labels,
                               typename E::A lse, typename E::A factor, int first, int step) {
  using A = typename E::A;
  constexpr int width = kWidest<typename E::T>;
  const std::int64_t label = labels.of(row, n, first == 0);
  const A scale = label < 0 ? highest<A>() - highest<A>() : factor;
  for (std::int64_t j = static_cast<std::int64_t>(first) * width; j < n; j += step * width) {
    A p[width];
    load_row<E>(p, x, j, n, packs, lse);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      p[k] = exp_of(p[k] - lse);
      p[k] = (j + k == label ? p[k] - A(1) : p[k]) * scale;
    }
    store_row<E>(dx, j, n, packs, p);
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_backward_rows(const typename E::T* x, Labels labels, const typename E::A* lse, const typename E::T* dy, typename E::T* dx, double scale,
                                std::int64_t rows, std::int64_t n, bool packs, int threads_per_row) {
  using A = typename E::A;
  const A factor = static_cast<A>(scale * static_cast<double>(E::load(dy[0])));
  const int first = static_cast<int>(threadIdx.x) % threads_per_row, rows_per_block = kThreads / threads_per_row;
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * rows_per_block + static_cast<int>(threadIdx.x) / threads_per_row; r < rows;
       r += static_cast<std::int64_t>(gridDim.x) * rows_per_block)
    gradient_row<E>(x + r * n, dx + r * n, r, n, packs, labels, lse[r], factor, first, threads_per_row);
}

void cross_entropy(const CrossEntropyArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("cross_entropy", "a floating-point dtype", args.dtype);
  if (args.rows <= 0) return fill(FillArgs{.dtype = args.dtype, .out = args.sum, .value = 0.0 * args.scale, .integer = 0, .loop = one_element()}, stream);
  const Labels labels = make_labels("cross_entropy", args.labels, args.label_stride, stream);
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    const T* x = static_cast<const T*>(args.x);
    A* lse = static_cast<A*>(args.lse);
    const Scratch scratch(static_cast<std::size_t>(args.rows) * sizeof(A), stream);
    A* loss = static_cast<A*>(scratch.data());
    const bool warps = args.n <= kWarpRow, packs = rows_in_packs(args.n, x);
    run("cross_entropy", warps ? cross_entropy_warps<E> : cross_entropy_blocks<E>, blocks_for(args.rows, warps ? kWarps : 1), kThreads, stream, x, labels, lse,
        loss, args.rows, args.n, packs);
    const WriteSum<E> write{static_cast<T*>(args.sum), args.scale, make_loop<1>(one_element())};
    reduce_all("cross_entropy", SumReducer<A>{}, load_dense<A>(loss, args.rows), write, 1, args.rows, false, stream);
  });
}

void cross_entropy_backward(const CrossEntropyBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("cross_entropy_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  const Labels labels = make_labels("cross_entropy_backward", args.labels, args.label_stride, stream);
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* x = static_cast<const T*>(args.x);
    T* dx = static_cast<T*>(args.dx);
    const int threads = args.n <= 8 * kWidest<T> ? 8 : args.n <= kWarpRow ? 32 : kThreads;
    run("cross_entropy_backward", cross_entropy_backward_rows<E>, blocks_for(args.rows, kThreads / threads), kThreads, stream, x, labels,
        static_cast<const typename E::A*>(args.lse), static_cast<const T*>(args.dy), dx, args.scale, args.rows, args.n, rows_in_packs(args.n, x, dx), threads);
  });
}

}  // namespace braid::cuda
