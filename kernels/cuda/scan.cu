#include <braid/core/kernel_args/scan.hpp>

#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Running sums and products, and linear recurrences, computed in double (integers: modulo 2^64).
// All three are the recurrence y_j = a_j y_{j-1} + x_j, whose steps are combined in pairs (Blelloch
// 1990, "Prefix sums and their applications", 1.4): a sum has a = 1, a product has no x. A block
// scans a line tile by tile: four elements per thread, then a tree over the warp, then over the
// warps. Short lines, and scans along outer dims, use one thread per line.
namespace braid::cuda {

/// A sequence of steps: y becomes factor * y + term.
template <class A> struct Steps {
  A factor, term;
};
template <class A> BRAID_DEVICE Steps<A> join(Steps<A> first, Steps<A> then) {
  return {first.factor * then.factor, then.factor * first.term + then.term};
}

template <class A> BRAID_DEVICE A load_wide(const void* p, DType dtype, std::int64_t i) {
  if constexpr (std::is_same_v<A, double>) {
    if (dtype == DType::float32) return F32::load(static_cast<const F32::T*>(p)[i]);
    if (dtype == DType::float64) return static_cast<const double*>(p)[i];
    if (dtype == DType::float16) return F16::load(static_cast<const F16::T*>(p)[i]);
    return BF16::load(static_cast<const BF16::T*>(p)[i]);
  } else {
    return static_cast<A>(static_cast<const std::int64_t*>(p)[i]);
  }
}
template <class A> BRAID_DEVICE void store_wide(void* p, DType dtype, std::int64_t i, A value) {
  if constexpr (std::is_same_v<A, double>) {
    if (dtype == DType::float32) static_cast<F32::T*>(p)[i] = static_cast<float>(value);
    else if (dtype == DType::float64) static_cast<double*>(p)[i] = value;
    else if (dtype == DType::float16)
      static_cast<F16::T*>(p)[i] = F16::store(static_cast<float>(value));
    else static_cast<BF16::T*>(p)[i] = BF16::store(static_cast<float>(value));
  } else {
    static_cast<std::int64_t*>(p)[i] = static_cast<std::int64_t>(value);
  }
}

/// One line: its element j is at `first + j * step`.
struct Places {
  std::int64_t first, step;
};
BRAID_DEVICE Places places_of(const ScanArgs& args, std::int64_t line) {
  const std::int64_t outer = line / args.inner,
                     first = outer * args.n * args.inner + (line - outer * args.inner);
  return args.reverse ? Places{first + (args.n - 1) * args.inner, -args.inner}
                      : Places{first, args.inner};
}

template <class A> BRAID_DEVICE Steps<A> step_at(const ScanArgs& args, std::int64_t i) {
  const A x = load_wide<A>(args.x, args.dtype, i);
  if (args.op == ScanOp::prod) return {x, A(0)};
  return {args.op == ScanOp::recurrence ? load_wide<A>(args.a, args.dtype, i) : A(1), x};
}

/// One thread per line.
template <class A> __global__ void __launch_bounds__(kThreads) scan_threads(ScanArgs args) {
  for (std::int64_t line = grid_thread(); line < args.outer * args.inner; line += grid_threads()) {
    const Places at = places_of(args, line);
    A y = args.op == ScanOp::prod ? A(1) : A(0);
    for (std::int64_t j = 0; j < args.n; ++j) {
      const Steps<A> step = step_at<A>(args, at.first + j * at.step);
      y = args.op == ScanOp::prod ? y * step.factor : step.factor * y + step.term;
      store_wide(args.y, args.dtype, at.first + j * at.step, y);
    }
  }
}

constexpr int kEach = 4, kTileLength = kThreads * kEach;

/// One block per line.
template <class A> __global__ void __launch_bounds__(kThreads) scan_blocks(ScanArgs args) {
  SIMT_SHARED(Steps<A>, warps, [kWarps]);
  const bool product = args.op == ScanOp::prod;
  for (std::int64_t line = blockIdx.x; line < args.outer * args.inner; line += gridDim.x) {
    const Places at = places_of(args, line);
    Steps<A> before{A(1), A(0)};  // the steps of all tiles so far
    for (std::int64_t tile = 0; tile < args.n; tile += kTileLength) {
      const std::int64_t first = tile + static_cast<std::int64_t>(threadIdx.x) * kEach;
      Steps<A> own[kEach];
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        own[k] = first + k < args.n ? step_at<A>(args, at.first + (first + k) * at.step)
                                    : Steps<A>{A(1), A(0)};
        if (k > 0) own[k] = join(own[k - 1], own[k]);
      }
      Steps<A> upto = own[kEach - 1];  // the steps of the lanes up to this one
#pragma unroll
      for (int apart = 1; apart < 32; apart *= 2) {
        const Steps<A> left{__shfl_up_sync(kFullWarp, upto.factor, apart),
                            __shfl_up_sync(kFullWarp, upto.term, apart)};
        if (lane_of_thread() >= apart) upto = join(left, upto);
      }
      if (lane_of_thread() == 31) warps[warp_of_thread()] = upto;
      __syncthreads();
      // The steps before this thread: the tiles, the warps, the lanes.
      Steps<A> start = before;
      for (int w = 0; w < kWarps; ++w) {
        if (w < warp_of_thread()) start = join(start, warps[w]);
        before = join(before, warps[w]);
      }
      const Steps<A> left{__shfl_up_sync(kFullWarp, upto.factor, 1),
                          __shfl_up_sync(kFullWarp, upto.term, 1)};
      if (lane_of_thread() > 0) start = join(start, left);
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        const Steps<A> y = join(start, own[k]);
        if (first + k < args.n)
          store_wide(args.y, args.dtype, at.first + (first + k) * at.step,
                     product ? y.factor : y.term);
      }
      __syncthreads();  // the next tile writes `warps` again
    }
  }
}

void scan(const ScanArgs& args, Stream& stream) {
  if (args.dtype != DType::int64 && !is_floating(args.dtype))
    fail_dtype("scan", "a floating-point dtype or int64", args.dtype);
  if (args.outer <= 0 || args.n <= 0 || args.inner <= 0) return;
  const std::int64_t lines = args.outer * args.inner;
  const bool threads = args.n <= 32 || args.inner >= 32;
  const auto launch = [&]<class A>(A) {
    if (threads) run("scan", scan_threads<A>, blocks_for(lines, kThreads), kThreads, stream, args);
    else run("scan", scan_blocks<A>, blocks_for(lines, 1), kThreads, stream, args);
  };
  if (args.dtype == DType::int64) launch(0ull);
  else launch(0.0);
}

}  // namespace braid::cuda
