#include <braid/core/internal/kernel_args/scan.hpp>

#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "simt/ptx.hpp"

// Running sums and products, and linear recurrences, computed in double (integers: modulo 2^64).
// All three are the recurrence y_j = a_j y_{j-1} + x_j, whose steps are combined in pairs (Blelloch
// 1990, "Prefix sums and their applications", 1.4): a sum has a = 1, a product has no x. A block
// scans a line tile by tile: four elements per thread, then a tree over the warp, then over the
// warps. Short lines, and scans along outer dims, use one thread per line. A few long lines, along
// any dim, are cut into parts of 4096, which look back at those before them (Merrill, Garland 2016,
// "Single-pass parallel prefix scan with decoupled look-back"): a line is read from memory once,
// and from the cache once more. A part joins what it needs in a fixed order, so the bits are the
// same each time.
namespace braid::cuda {

/// A sequence of steps: y becomes factor * y + term.
template <class A> struct alignas(16) Steps {
  A factor, term;
};
/// Changes nothing when it is joined.
template <class A> BRAID_DEVICE Steps<A> no_steps() { return {A(1), A(0)}; }
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

/// The steps of the lanes up to this one.
template <class A> BRAID_DEVICE Steps<A> join_lanes_before(Steps<A> upto) {
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2) {
    const Steps<A> left{__shfl_up_sync(kFullWarp, upto.factor, apart),
                        __shfl_up_sync(kFullWarp, upto.term, apart)};
    if (lane_of_thread() >= apart) upto = join(left, upto);
  }
  return upto;
}

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
      own[k] = first + k < end ? load(first + k) : no_steps<A>();
      if (k > 0) own[k] = join(own[k - 1], own[k]);
    }
    const Steps<A> upto = join_lanes_before(own[kEach - 1]);
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

/// One block for each line.
template <class A> __global__ void __launch_bounds__(kThreads) scan_blocks(ScanArgs args) {
  SIMT_SHARED(Steps<A>, warps, [kWarps]);
  const bool product = args.op == ScanOp::prod;
  for (std::int64_t line = blockIdx.x; line < args.outer * args.inner; line += gridDim.x) {
    const Places at = places_of(args, line);
    scan_range<A>(
        warps, 0, args.n, no_steps<A>(),
        [&](std::int64_t j) { return step_at<A>(args, at.first + j * at.step); },
        [&](std::int64_t j, Steps<A> y) {
          store_wide(args.y, args.dtype, at.first + j * at.step, product ? y.factor : y.term);
        });
  }
}

/// The parts of each line as the leaves of a tree. Each node has up to kFan children, and the
/// joined steps of the parts below it. They are set, then marked as ready, by the block of the last
/// of these parts. A line's nodes are in one range, the leaves first, then the level above, …
inline constexpr std::int64_t kFan = 32;
template <class A> struct PartTree {
  std::int64_t parts, nodes;  // of a line
  unsigned* next;             // the ticket of the next part
  unsigned* ready;            // 0 or 1, for each node
  Steps<A>* steps;
};

/// The steps before a part of a line, whose own are `own`, for a warp. Waits only for parts whose
/// tickets are earlier, which have blocks that run.
template <class A>
BRAID_DEVICE Steps<A> look_back(const PartTree<A>& tree, std::int64_t line, std::int64_t part,
                                Steps<A> own) {
  const int lane = lane_of_thread();
  Steps<A> before = no_steps<A>();
  bool last = part + 1 < tree.parts;  // of the parts below this node; the line's end is for nobody
  std::int64_t level = line * tree.nodes, node = part;
  for (std::int64_t count = tree.parts; count > 1; count = (count - 1) / kFan + 1) {
    if (last && lane == 0) {
      tree.steps[level + node] = own;
      simt::store_release(tree.ready + level + node, 1u);
    }
    const int child = static_cast<int>(node % kFan);  // of its parent
    const std::int64_t sibling = level + node - child + lane;
    Steps<A> steps = no_steps<A>();
    if (lane < child) {
      while (simt::load_acquire(tree.ready + sibling) == 0) {}
      steps = tree.steps[sibling];
    }
    steps = join_lanes_before(steps);
    const Steps<A> siblings{__shfl_sync(kFullWarp, steps.factor, 31),
                            __shfl_sync(kFullWarp, steps.term, 31)};
    before = join(siblings, before);
    last = last && child == kFan - 1;
    if (last) own = join(siblings, own);
    level += count, node /= kFan;
  }
  return before;
}

/// A block takes the next part by a ticket, because blocks may start in any order. Together they
/// take each part of all lines.
template <class A>
__global__ void __launch_bounds__(kThreads) scan_parts(ScanArgs args, PartTree<A> tree) {
  SIMT_SHARED(Steps<A>, warps, [kWarps]);
  SIMT_SHARED(unsigned, ticket, [1]);
  SIMT_SHARED(Steps<A>, start, [1]);
  const bool product = args.op == ScanOp::prod;
  const std::int64_t parts = args.outer * args.inner * tree.parts;
  for (std::int64_t taken = blockIdx.x; taken < parts; taken += gridDim.x) {
    if (threadIdx.x == 0) ticket[0] = atomicAdd(tree.next, 1u);
    __syncthreads();
    const std::int64_t item = ticket[0];
    const std::int64_t line = item / tree.parts, part = item - line * tree.parts;
    const Places at = places_of(args, line);
    const std::int64_t begin = part * kPartLength,
                       end = args.n - begin < kPartLength ? args.n : begin + kPartLength;
    const auto load = [&](std::int64_t j) { return step_at<A>(args, at.first + j * at.step); };
    Steps<A> own = no_steps<A>();
    if (end < args.n)  // nobody needs those of a line's end
      own = scan_range<A>(warps, begin, end, own, load, [](std::int64_t, Steps<A>) {});
    if (warp_of_thread() == 0) {
      const Steps<A> before = look_back(tree, line, part, own);
      if (threadIdx.x == 0) start[0] = before;
    }
    __syncthreads();
    scan_range<A>(warps, begin, end, start[0], load, [&](std::int64_t j, Steps<A> y) {
      store_wide(args.y, args.dtype, at.first + j * at.step, product ? y.factor : y.term);
    });
  }
}

template <class A> void scan_lines(const ScanArgs& args, Stream& stream) {
  // Fewer lines leave SMs idle if each has a block. If each has a thread, far more still do, but
  // parts read numbers that lie apart: where the two are equal is an estimate.
  constexpr std::int64_t enough_blocks = 128, enough_threads = 1024;
  const std::int64_t lines = args.outer * args.inner;
  const bool beside = args.inner >= 32;  // a warp's threads read 32 lines side by side
  const bool in_parts =
      args.n > 2 * kPartLength && lines < (beside ? enough_threads : enough_blocks);
  if (args.n <= 32 || (beside && !in_parts))
    return run("scan", scan_threads<A>, blocks_for(lines, kThreads), kThreads, stream, args);
  if (!in_parts) return run("scan", scan_blocks<A>, blocks_for(lines, 1), kThreads, stream, args);
  const std::int64_t parts = (args.n - 1) / kPartLength + 1;
  std::int64_t nodes = 0;  // of a line
  for (std::int64_t count = parts; count > 1; count = (count - 1) / kFan + 1) nodes += count;
  const std::size_t steps = static_cast<std::size_t>(lines * nodes) * sizeof(Steps<A>),
                    flags = static_cast<std::size_t>(lines * nodes + 1) * sizeof(unsigned);
  const Scratch scratch(steps + flags, stream);
  auto* const first = static_cast<char*>(scratch.data());
  auto* const next = reinterpret_cast<unsigned*>(first + steps);
  const PartTree<A> tree{parts, nodes, next, next + 1, reinterpret_cast<Steps<A>*>(first)};
  set_zero("scan", next, flags, stream);
  run("scan", scan_parts<A>, blocks_for(lines * parts, 1), kThreads, stream, args, tree);
}

void scan(const ScanArgs& args, Stream& stream) {
  if (args.dtype != DType::int64 && !is_floating(args.dtype))
    fail_dtype("scan", "a floating-point dtype or int64", args.dtype);
  if (args.outer <= 0 || args.n <= 0 || args.inner <= 0) return;
  if (args.dtype == DType::int64) scan_lines<unsigned long long>(args, stream);
  else scan_lines<double>(args, stream);
}

}  // namespace braid::cuda
