#include <braid/core/internal/kernel_args/scan.hpp>

#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Running sums and products, and linear recurrences, computed in double (integers: modulo 2^64).
// All three are the recurrence y_j = a_j y_{j-1} + x_j, whose steps are combined in pairs (Blelloch
// 1990, "Prefix sums and their applications", 1.4): a sum has a = 1, a product has no x. A block
// scans a line tile by tile: four elements per thread, then a tree over the warp, then over the
// warps. Short lines, and scans along outer dims, use one thread per line. A few long lines are cut
// into parts of 4096, a block each: the steps of each part, then those before each part, then the
// results. That reads a line twice. No block waits for another one, and the order of the joins is
// fixed, so that the bits are too.
namespace braid::cuda {

/// A sequence of steps: y becomes factor * y + term.
template <class A> struct alignas(16) Steps {
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
constexpr std::int64_t kPartLength = 4 * kTileLength;  // of a long line, for each block

/// Scans the steps [begin, end) of a line after those that `before` has joined: load(j) returns
/// step j, and write(j, steps) gets all steps up to it. Returns the steps up to `end`. For all
/// threads of a block; `warps` is shared memory.
template <class A, class Load, class Write>
BRAID_DEVICE Steps<A> scan_range(Steps<A>* warps, std::int64_t begin, std::int64_t end,
                                 Steps<A> before, Load load, Write write) {
  for (std::int64_t tile = begin; tile < end; tile += kTileLength) {
    const std::int64_t first = tile + static_cast<std::int64_t>(threadIdx.x) * kEach;
    Steps<A> own[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      own[k] = first + k < end ? load(first + k) : Steps<A>{A(1), A(0)};
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
    for (int k = 0; k < kEach; ++k)
      if (first + k < end) write(first + k, join(start, own[k]));
    __syncthreads();  // the next tile writes `warps` again
  }
  return before;
}

/// The parts of all lines, in order; a line of one part has no starts.
template <class A> struct Parts {
  std::int64_t of_line, length;
  Steps<A>* starts;  // the steps before each part

  [[nodiscard]] BRAID_DEVICE std::int64_t line(std::int64_t item) const {
    return of_line == 1 ? item : item / of_line;
  }
  [[nodiscard]] BRAID_DEVICE std::int64_t begin(std::int64_t item) const {
    return (item - line(item) * of_line) * length;
  }
};

/// One block for each part of a line.
template <class A>
__global__ void __launch_bounds__(kThreads) scan_blocks(ScanArgs args, Parts<A> parts) {
  SIMT_SHARED(Steps<A>, warps, [kWarps]);
  const bool product = args.op == ScanOp::prod;
  const std::int64_t items = args.outer * args.inner * parts.of_line;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const Places at = places_of(args, parts.line(item));
    const std::int64_t begin = parts.begin(item), left = args.n - begin;
    scan_range<A>(
        warps, begin, begin + (left < parts.length ? left : parts.length),
        parts.starts ? parts.starts[item] : Steps<A>{A(1), A(0)},
        [&](std::int64_t j) { return step_at<A>(args, at.first + j * at.step); },
        [&](std::int64_t j, Steps<A> y) {
          store_wide(args.y, args.dtype, at.first + j * at.step, product ? y.factor : y.term);
        });
  }
}

/// steps[part] = the joined steps of each part. The last one of a line is not needed, nor written.
template <class A>
__global__ void __launch_bounds__(kThreads)
    scan_part_steps(ScanArgs args, Parts<A> parts, Steps<A>* steps) {
  SIMT_SHARED(Steps<A>, warps, [kWarps]);
  const std::int64_t items = args.outer * args.inner * parts.of_line;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t begin = parts.begin(item);
    if (begin + parts.length >= args.n) continue;
    const Places at = places_of(args, parts.line(item));
    const Steps<A> all = scan_range<A>(
        warps, begin, begin + parts.length, Steps<A>{A(1), A(0)},
        [&](std::int64_t j) { return step_at<A>(args, at.first + j * at.step); },
        [](std::int64_t, Steps<A>) {});
    if (threadIdx.x == 0) steps[item] = all;
  }
}

/// parts.starts from the steps of all parts, one block for each line.
template <class A>
__global__ void __launch_bounds__(kThreads)
    scan_starts(std::int64_t lines, Parts<A> parts, const Steps<A>* steps) {
  SIMT_SHARED(Steps<A>, warps, [kWarps]);
  for (std::int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    const Steps<A>* const of_line = steps + line * parts.of_line;
    Steps<A>* const starts = parts.starts + line * parts.of_line;
    if (threadIdx.x == 0) starts[0] = {A(1), A(0)};
    scan_range<A>(
        warps, 0, parts.of_line - 1, Steps<A>{A(1), A(0)},
        [&](std::int64_t j) { return of_line[j]; },
        [&](std::int64_t j, Steps<A> y) { starts[j + 1] = y; });
  }
}

template <class A> void scan_lines(const ScanArgs& args, Stream& stream) {
  const std::int64_t lines = args.outer * args.inner;
  if (args.n <= 32 || args.inner >= 32)
    return run("scan", scan_threads<A>, blocks_for(lines, kThreads), kThreads, stream, args);
  // Enough lines keep all SMs at work; then a line is read once.
  constexpr std::int64_t enough = 128;
  Parts<A> parts{1, args.n, nullptr};
  if (args.n <= 2 * kPartLength || lines >= enough)
    return run("scan", scan_blocks<A>, blocks_for(lines, 1), kThreads, stream, args, parts);
  parts.of_line = (args.n - 1) / kPartLength + 1, parts.length = kPartLength;
  const std::int64_t all = lines * parts.of_line;
  const Scratch scratch(2 * static_cast<std::size_t>(all) * sizeof(Steps<A>), stream);
  Steps<A>* const steps = static_cast<Steps<A>*>(scratch.data());
  parts.starts = steps + all;
  const unsigned blocks = blocks_for(all, 1);
  run("scan", scan_part_steps<A>, blocks, kThreads, stream, args, parts, steps);
  run("scan", scan_starts<A>, blocks_for(lines, 1), kThreads, stream, lines, parts, steps);
  run("scan", scan_blocks<A>, blocks, kThreads, stream, args, parts);
}

void scan(const ScanArgs& args, Stream& stream) {
  if (args.dtype != DType::int64 && !is_floating(args.dtype))
    fail_dtype("scan", "a floating-point dtype or int64", args.dtype);
  if (args.outer <= 0 || args.n <= 0 || args.inner <= 0) return;
  if (args.dtype == DType::int64) scan_lines<unsigned long long>(args, stream);
  else scan_lines<double>(args, stream);
}

}  // namespace braid::cuda
