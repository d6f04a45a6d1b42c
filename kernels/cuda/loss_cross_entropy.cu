#include <limits>

#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/internal/kernel_args/loss.hpp>

#include "cuda/device/reduce.cuh"
#include "cuda/device/report.cuh"
#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Fused cross entropy of contiguous logits with class labels; no probabilities are stored. A row of
// up to 1024 classes is computed by a warp, a longer one by a block.
// Traffic  the logits are read once, forward and backward; forward again for label smoothing. Rows
//          of any length are read and written in accesses of 16 bytes, except at their ends.
// Sum      of the rows' losses: by the last block of the kernel for rows, up to 4096 of them. Of
//          more rows many blocks sum the chunks, in a launch of its own: one block would be slower.
// Labels   outside [0, n) are reported (runtime/device_errors.hpp); the row's loss and gradient are
//          NaN.
namespace braid::cuda {

struct Labels {
  const std::int64_t* p;
  std::int64_t stride, ignored;
  bool ignores;
  FaultSite site;
  static constexpr std::int64_t kWrong = -1, kIgnored = -2;
  /// Returns the label of a row, kIgnored, or, after a report, kWrong.
  BRAID_DEVICE std::int64_t of(std::int64_t row, std::int64_t n, bool reports) const {
    const std::int64_t label = p[row * stride];
    if (ignores && label == ignored) return kIgnored;
    if (label >= 0 && label < n) return label;
    if (reports) report(site, DeviceFault::index, 0, n, label, row);
    return kWrong;
  }
};
template <class Args> Labels make_labels(const char* op, const Args& args, Stream& stream) {
  return {args.labels, args.label_stride, args.ignore_index, args.ignores,
          fault_site(device_error_record(stream), op, "labels")};
}

/// The target distribution: hot = 1 - label_smoothing for the label plus spread = label_smoothing /
/// n for every class, each times the class's weight.
template <class E> struct Classes {
  using A = typename E::A;
  const typename E::T* weight;
  A hot, spread;
  BRAID_DEVICE A of(std::int64_t c) const { return weight == nullptr ? A(1) : E::load(weight[c]); }
};
template <class E, class Args> Classes<E> make_classes(const Args& args) {
  return {static_cast<const typename E::T*>(args.weight),
          static_cast<typename E::A>(1.0 - args.label_smoothing),
          static_cast<typename E::A>(args.label_smoothing / static_cast<double>(args.n))};
}

/// A row's loss and the weight of its label, which are summed together.
template <class A> struct Loss {
  A loss, weight;
};
template <class A> struct LossReducer {
  using Acc = Loss<A>;
  static constexpr int kParts = 4;
  BRAID_DEVICE Acc none() const { return {A(0), A(0)}; }
  BRAID_DEVICE Acc join(Acc a, Acc b) const { return {a.loss + b.loss, a.weight + b.weight}; }
  BRAID_DEVICE Acc shuffle(Acc value, int step) const {
    return {__shfl_xor_sync(kFullWarp, value.loss, step),
            __shfl_xor_sync(kFullWarp, value.weight, step)};
  }
};
template <class E> struct WriteLoss {
  typename E::T* sum;
  typename E::A* total;
  double scale;
  bool mean;
  BRAID_DEVICE void operator()(std::int64_t, Loss<typename E::A> all) const {
    const double loss = static_cast<double>(all.loss);
    *sum = E::from_double((mean ? loss / static_cast<double>(all.weight) : multiply(loss, scale)) +
                          0.0);
    if (total != nullptr) *total = all.weight;
  }
};

/// The outputs of the kernels for rows.
template <class E> struct RowLosses {
  typename E::A* lse;
  Loss<typename E::A>* loss;
  typename E::T* row_loss;
  unsigned* counter;  // of the blocks that have written their rows; null: another kernel sums them
  WriteLoss<E> write;
};
/// Sums the rows' losses in the last block. Requires that thread 0 has written the block's losses,
/// or that a barrier followed them.
template <class E>
BRAID_DEVICE void sum_rows(const RowLosses<E>& out, std::int64_t rows, Loss<typename E::A>* part) {
  if (out.counter == nullptr || !arrives_last(out.counter, gridDim.x)) return;
  const int n = static_cast<int>(rows);
  using Dense = LoadDense<Loss<typename E::A>>;
  const Dense dense{out.loss, n, n % Dense::kPack == 0};
  const auto all = reduce_in_block(LossReducer<typename E::A>{}, dense, n, part);
  if (threadIdx.x == 0) out.write(0, all);
}

/// Computes one row.
template <class E, class G>
BRAID_DEVICE void loss_row(const G& group, const typename E::T* x, std::int64_t row, std::int64_t n,
                           bool packs, const Labels& labels, const Classes<E>& classes,
                           const RowLosses<E>& out) {
  using A = typename E::A;
  const MaxAndSum<A> all = max_and_sum<E>(group, x, n, packs);
  const A log = log_of(all.sum), lse = all.max + log;
  A even = A(0);  // smoothing term over all classes
  if (classes.spread != A(0))
    even = group_sum<A>(group, n,
                        [&](std::int64_t c) { return classes.of(c) * (lse - E::load(x[c])); });
  if (group.rank() != 0) return;
  const std::int64_t label = labels.of(row, n, true);
  A loss = A(0), weight = A(0);
  if (label >= 0) {
    weight = classes.of(label);
    // Subtracted first: the difference is exact where both numbers are large and close.
    loss = classes.hot * weight * ((all.max - E::load(x[label])) + log);
    if (classes.spread != A(0)) loss += classes.spread * even;
  } else if (label == Labels::kWrong) {
    loss = weight = highest<A>() - highest<A>();
  }
  out.lse[row] = lse;
  out.loss[row] = {loss, weight};
  if (out.row_loss != nullptr) out.row_loss[row] = E::store(loss);
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_warps(const typename E::T* x, Labels labels, Classes<E> classes, RowLosses<E> out,
                        std::int64_t rows, std::int64_t n, bool packs) {
  SIMT_SHARED(Loss<typename E::A>, part, [kWarps]);
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); r < rows;
       r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    loss_row<E>(WarpGroup{}, x + r * n, r, n, packs, labels, classes, out);
  __syncthreads();  // one thread tells the last block of all these rows
  sum_rows(out, rows, part);
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_blocks(const typename E::T* x, Labels labels, Classes<E> classes,
                         RowLosses<E> out, std::int64_t rows, std::int64_t n, bool packs) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kWarps]);
  SIMT_SHARED(Loss<A>, losses, [kWarps]);
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x)
    loss_row<E>(BlockGroup<A>{part}, x + r * n, r, n, packs, labels, classes, out);
  sum_rows(out, rows, losses);
}

/// The factor of each row's gradient.
template <class E> struct Upstream {
  const typename E::T* dy;
  std::int64_t stride;
  const typename E::A* total;
  double scale;
  BRAID_DEVICE typename E::A of(std::int64_t row) const {
    const double divided = total == nullptr ? scale : scale / static_cast<double>(*total);
    return static_cast<typename E::A>(divided * static_cast<double>(E::load(dy[row * stride])));
  }
};

/// Computes the part of a row that belongs to thread `first` of `step`. dx may be x: one thread
/// reads and writes each element.
template <class E>
BRAID_DEVICE void gradient_row(const typename E::T* x, typename E::T* dx, std::int64_t row,
                               std::int64_t n, const Labels& labels, const Classes<E>& classes,
                               typename E::A of_all, typename E::A lse, typename E::A factor,
                               int first, int step) {
  using A = typename E::A;
  constexpr int width = kWidest<typename E::T>;
  const std::int64_t label = labels.of(row, n, first == 0);
  const A at_label = label >= 0 ? classes.hot * classes.of(label) : A(0), share = at_label + of_all;
  const A scale = label == Labels::kWrong ? highest<A>() - highest<A>() : factor;
  const int common = common_skew(x, dx);
  const int skew = sizeof(typename E::T) == 8 && common > 0 ? -1 : common;  // fewer registers
  for (std::int64_t j = first_aligned<width>(first, skew); j < n; j += step * width) {
    const bool whole = is_whole<width>(j, skew, n);
    A p[width];
    load_part<E>(p, x, j, n, whole, lse);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      p[k] = multiply(exp_of(p[k] - lse), share);
      if (classes.spread != A(0) && j + k >= 0 && j + k < n)
        p[k] -= multiply(classes.spread, classes.of(j + k));
      p[k] = label == Labels::kIgnored ? A(0) : (j + k == label ? p[k] - at_label : p[k]) * scale;
    }
    store_part<E>(dx, j, n, whole, p);
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_backward_rows(const typename E::T* x, Labels labels, Classes<E> classes,
                                const typename E::A* lse, Upstream<E> dy, typename E::T* dx,
                                std::int64_t rows, std::int64_t n, int threads_per_row) {
  using A = typename E::A;
  const int first = static_cast<int>(threadIdx.x) % threads_per_row,
            rows_per_block = kThreads / threads_per_row;
  // Σ of the classes' shares. Each warp computes it itself, in the same order.
  A of_all = A(0);
  if (classes.spread != A(0))
    of_all = classes.spread *
             group_sum<A>(WarpGroup{}, n, [&](std::int64_t c) { return classes.of(c); });
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * rows_per_block +
                        static_cast<int>(threadIdx.x) / threads_per_row;
       r < rows; r += static_cast<std::int64_t>(gridDim.x) * rows_per_block)
    gradient_row<E>(x + r * n, dx + r * n, r, n, labels, classes, of_all, lse[r], dy.of(r), first,
                    threads_per_row);
}

void cross_entropy(const CrossEntropyArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("cross_entropy", "a floating-point dtype", args.dtype);
  if (args.rows <= 0) {
    const double none = args.mean ? std::numeric_limits<double>::quiet_NaN() : 0.0 * args.scale;
    fill(FillArgs{.dtype = args.dtype,
                  .out = args.sum,
                  .value = none,
                  .integer = 0,
                  .loop = one_element()},
         stream);
    const DType wide = args.dtype == DType::float64 ? DType::float64 : DType::float32;
    if (args.total != nullptr)
      fill(
          FillArgs{
              .dtype = wide, .out = args.total, .value = 0.0, .integer = 0, .loop = one_element()},
          stream);
    return;
  }
  const Labels labels = make_labels("cross_entropy", args, stream);
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    const T* x = static_cast<const T*>(args.x);
    const Scratch scratch(static_cast<std::size_t>(args.rows) * sizeof(Loss<A>), stream);
    Loss<A>* loss = static_cast<Loss<A>*>(scratch.data());
    const WriteLoss<E> write{static_cast<T*>(args.sum), static_cast<A*>(args.total), args.scale,
                             args.mean};
    const bool joins = args.rows <= kBlockChunk;
    const RowLosses<E> out{static_cast<A*>(args.lse), loss, static_cast<T*>(args.row_loss),
                           joins ? tickets_of(stream) : nullptr, write};
    const bool warps = args.n <= kWarpRow, packs = rows_in_packs(args.n, x);
    run("cross_entropy", warps ? cross_entropy_warps<E> : cross_entropy_blocks<E>,
        blocks_for(args.rows, warps ? kWarps : 1), kThreads, stream, x, labels,
        make_classes<E>(args), out, args.rows, args.n, packs);
    if (joins) return;
    reduce_all("cross_entropy", LossReducer<A>{}, load_dense<Loss<A>>(loss, args.rows), write, 1,
               args.rows, false, stream);
  });
}

void cross_entropy_backward(const CrossEntropyBackwardArgs& args, Stream& stream) {
  if (!is_floating(args.dtype))
    fail_dtype("cross_entropy_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  const Labels labels = make_labels("cross_entropy_backward", args, stream);
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    const T* x = static_cast<const T*>(args.x);
    T* dx = static_cast<T*>(args.dx);
    const int threads = args.n <= 8 * kWidest<T> ? 8 : args.n <= kWarpRow ? 32 : kThreads;
    const Upstream<E> dy{static_cast<const T*>(args.dy), args.dy_stride,
                         static_cast<const A*>(args.total), args.scale};
    run("cross_entropy_backward", cross_entropy_backward_rows<E>,
        blocks_for(args.rows, kThreads / threads), kThreads, stream, x, labels,
        make_classes<E>(args), static_cast<const A*>(args.lse), dy, dx, args.rows, args.n, threads);
  });
}

}  // namespace braid::cuda
