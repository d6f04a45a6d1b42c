#pragma once
#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"

// Reductions of `n` elements to each of `outputs` results.
// A reducer R   `Acc`, `kParts` (a power of two), `Acc none() const`, `Acc join(Acc a, Acc b) const` (commutative), `Acc shuffle(Acc, step)` (from lane ^ step).
// A loader L    `base(output)` and `Acc at(base, j)`: element j of an output.
// A writer W    `operator()(output, Acc)`.
// Order         Chunks of fixed length, joined by a tree inside (kParts results a thread, warps, block) and again by the same kernels over the chunks: a sum
//               of n is a tree of about log2 n levels. It depends on sizes and on whether rows or columns are dense, on nothing else.
namespace braid::cuda {

inline constexpr std::int64_t kThreadLength = 16;  // up to here a thread takes an output
inline constexpr std::int64_t kWarpLength = 512;   // up to here a warp
inline constexpr std::int64_t kBlockChunk = 4096;  // of a long row, a block's share
inline constexpr int kColumns = 32, kColumnRows = 8;
inline constexpr std::int64_t kColumnChunk = 128;  // rows of a block of columns

/// Elements begin, begin + step, … below end of an output, in R::kParts partial results.
template <class R, class L>
BRAID_DEVICE typename R::Acc reduce_part(const R& reducer, const L& load, std::int64_t base, std::int64_t begin, std::int64_t end, std::int64_t step) {
  constexpr int parts = R::kParts;
  typename R::Acc acc[parts];
#pragma unroll
  for (int u = 0; u < parts; ++u) acc[u] = reducer.none();
  for (std::int64_t j = begin; j < end; j += parts * step) {
#pragma unroll
    for (int u = 0; u < parts; ++u)
      if (j + u * step < end) acc[u] = reducer.join(acc[u], load.at(base, j + u * step));
  }
#pragma unroll
  for (int width = parts / 2; width > 0; width /= 2)
#pragma unroll
    for (int u = 0; u < width; ++u) acc[u] = reducer.join(acc[u], acc[u + width]);
  return acc[0];
}

template <class R>
BRAID_DEVICE typename R::Acc join_lanes(const R& reducer, typename R::Acc value, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) value = reducer.join(value, reducer.shuffle(value, step));
  return value;
}

/// One output a thread.
template <class R, class L, class W>
__global__ void __launch_bounds__(kThreads) reduce_threads(R reducer, L load, W write, std::int64_t outputs, std::int64_t n) {
  for (std::int64_t e = grid_thread(); e < outputs; e += grid_threads()) write(e, reduce_part(reducer, load, load.base(e), 0, n, 1));
}

/// One output a warp.
template <class R, class L, class W>
__global__ void __launch_bounds__(kThreads) reduce_warps(R reducer, L load, W write, std::int64_t outputs, std::int64_t n) {
  for (std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread(); e < outputs; e += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    const auto value = join_lanes(reducer, reduce_part(reducer, load, load.base(e), lane_of_thread(), n, 32), 32);
    if (lane_of_thread() == 0) write(e, value);
  }
}

/// One chunk of an output a block. With several chunks the results go to `partial` [outputs, chunks].
template <class R, class L, class W>
__global__ void __launch_bounds__(kThreads)
    reduce_blocks(R reducer, L load, W write, typename R::Acc* partial, std::int64_t outputs, std::int64_t n, std::int64_t chunks) {
  using Acc = typename R::Acc;
  SIMT_SHARED(Acc, part, [kWarps]);
  for (std::int64_t item = blockIdx.x; item < outputs * chunks; item += gridDim.x) {
    const std::int64_t e = item / chunks, begin = item % chunks * kBlockChunk;
    const std::int64_t end = n - begin < kBlockChunk ? n : begin + kBlockChunk;
    const Acc own = join_lanes(reducer, reduce_part(reducer, load, load.base(e), begin + threadIdx.x, end, kThreads), 32);
    if (lane_of_thread() == 0) part[warp_of_thread()] = own;
    __syncthreads();
    if (warp_of_thread() == 0) {
      const Acc all = join_lanes(reducer, part[lane_of_thread() % kWarps], kWarps);
      if (threadIdx.x == 0) {
        if (partial != nullptr) partial[item] = all;
        else write(e, all);
      }
    }
    __syncthreads();  // the next chunk writes `part` again
  }
}

/// 32 neighbouring outputs and a chunk of their elements a block, for outputs that lie side by side.
template <class R, class L, class W>
__global__ void __launch_bounds__(kColumns* kColumnRows)
    reduce_columns(R reducer, L load, W write, typename R::Acc* partial, std::int64_t outputs, std::int64_t n, std::int64_t chunks) {
  using Acc = typename R::Acc;
  SIMT_SHARED(Acc, part, [kColumnRows][kColumns + 1]);
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t tiles = (outputs + kColumns - 1) / kColumns;
  for (std::int64_t item = blockIdx.x; item < tiles * chunks; item += gridDim.x) {
    const std::int64_t e = item % tiles * kColumns + tx, chunk = item / tiles, begin = chunk * kColumnChunk;
    const std::int64_t end = n - begin < kColumnChunk ? n : begin + kColumnChunk;
    if (e < outputs) part[ty][tx] = reduce_part(reducer, load, load.base(e), begin + ty, end, kColumnRows);
    __syncthreads();
    if (ty == 0 && e < outputs) {
      Acc all[kColumnRows];
#pragma unroll
      for (int k = 0; k < kColumnRows; ++k) all[k] = part[k][tx];
#pragma unroll
      for (int width = kColumnRows / 2; width > 0; width /= 2)
#pragma unroll
        for (int k = 0; k < width; ++k) all[k] = reducer.join(all[k], all[k + width]);
      if (partial != nullptr) partial[e * chunks + chunk] = all[0];
      else write(e, all[0]);
    }
    __syncthreads();  // the next chunk writes `part` again
  }
}

/// Results of chunks, or any dense row of accumulators: element j of output e at p[e * n + j].
template <class Acc>
struct LoadDense {
  const Acc* p;
  std::int64_t n;
  BRAID_DEVICE std::int64_t base(std::int64_t e) const { return e * n; }
  BRAID_DEVICE Acc at(std::int64_t base, std::int64_t j) const { return p[base + j]; }
};

/// Queues the kernels of one reduction, n > 0. `columns`: neighbouring outputs are nearer in memory than neighbouring elements of one.
template <class R, class L, class W>
void reduce_all(const char* op, const R& reducer, const L& load, const W& write, std::int64_t outputs, std::int64_t n, bool columns, Stream& stream) {
  using Acc = typename R::Acc;
  if (outputs <= 0) return;
  if (n <= kThreadLength) return run(op, reduce_threads<R, L, W>, blocks_for(outputs, kThreads), kThreads, stream, reducer, load, write, outputs, n);
  if (!columns && n <= kWarpLength) return run(op, reduce_warps<R, L, W>, blocks_for(outputs, kWarps), kThreads, stream, reducer, load, write, outputs, n);
  const std::int64_t chunk = columns ? kColumnChunk : kBlockChunk, chunks = (n - 1) / chunk + 1;
  const auto launch = [&](Acc* partial) {
    if (columns) {
      run(op, reduce_columns<R, L, W>, blocks_for(((outputs - 1) / kColumns + 1) * chunks, 1), dim3(kColumns, kColumnRows), stream, reducer, load, write, partial,
          outputs, n, chunks);
    } else {
      run(op, reduce_blocks<R, L, W>, blocks_for(outputs * chunks, 1), kThreads, stream, reducer, load, write, partial, outputs, n, chunks);
    }
  };
  if (chunks == 1) return launch(nullptr);
  const Scratch scratch(static_cast<std::size_t>(outputs * chunks) * sizeof(Acc), stream);
  Acc* const partial = static_cast<Acc*>(scratch.data());
  launch(partial);
  reduce_all(op, reducer, LoadDense<Acc>{partial, chunks}, write, outputs, chunks, false, stream);
}

/// Sums in A.
template <class A>
struct SumReducer {
  using Acc = A;
  static constexpr int kParts = 4;
  BRAID_DEVICE Acc none() const { return A(0); }
  BRAID_DEVICE Acc join(Acc a, Acc b) const { return a + b; }
  BRAID_DEVICE Acc shuffle(Acc value, int step) const { return __shfl_xor_sync(kFullWarp, value, step); }
};

/// Stores scale * sum in E, rounded once (16-bit types: to float first). Adding 0 makes the sum of negative zeros 0.
template <class E>
struct WriteSum {
  typename E::T* out;
  double scale;
  DeviceLoop<1> keep;
  BRAID_DEVICE void operator()(std::int64_t e, typename E::A sum) const {
    out[offsets_of(keep, e).at[0]] = E::from_double(multiply(static_cast<double>(sum), scale) + 0.0);
  }
};

/// The elements of a tensor: outputs are those of `keep` (operand 1 of the op's loop), what is reduced is `over`.
template <class E, class V>
struct LoadTensor {
  const typename E::T* x;
  DeviceLoop<1> keep, over;
  BRAID_DEVICE std::int64_t base(std::int64_t e) const { return offsets_of(keep, e).at[0]; }
  BRAID_DEVICE V at(std::int64_t base, std::int64_t j) const { return static_cast<V>(E::load(x[base + offsets_of(over, j).at[0]])); }
};

/// The same for integers and bool of any size, told apart at run time: one set of kernels for all.
template <class V>
struct LoadIntegers {
  const void* x;
  DType dtype;
  DeviceLoop<1> keep, over;
  BRAID_DEVICE std::int64_t base(std::int64_t e) const { return offsets_of(keep, e).at[0]; }
  BRAID_DEVICE V at(std::int64_t base, std::int64_t j) const {
    const std::int64_t i = base + offsets_of(over, j).at[0];
    if (dtype == DType::int64) return static_cast<V>(static_cast<const std::int64_t*>(x)[i]);
    if (dtype == DType::int32) return static_cast<V>(static_cast<const std::int32_t*>(x)[i]);
    return static_cast<V>(static_cast<const std::uint8_t*>(x)[i]);
  }
};

/// Neighbouring outputs are nearer than neighbouring elements.
inline bool by_columns(const ReduceArgs& args) {
  const auto step = [](const Loop& loop) {
    const std::int64_t stride = loop.rank == 0 ? INT64_MAX : loop.stride[1][loop.rank - 1];
    return stride < 0 ? -stride : stride;
  };
  return args.keep.n >= 8 && step(args.keep) != 0 && step(args.keep) < step(args.over);
}

}  // namespace braid::cuda
