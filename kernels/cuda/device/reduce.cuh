#pragma once
#include <braid/core/kernel_args/reduce.hpp>

#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"

// Reductions of `n` elements to each of `outputs` results.
// A reducer R   has `Acc`, `kParts` (a power of two), `Acc none() const`,
//               `Acc join(Acc a, Acc b) const` (commutative) and `Acc shuffle(Acc, step)`: the
//               value of lane ^ step.
// A loader L    has `base(output)` and `at(base, j)`: element j of an output. If `packs`,
//               `pack(base, j, to)` loads kPack neighbouring elements from a multiple of kPack on,
//               in accesses of 16 bytes. With `kSideBySide`, `beside` also loads elements j of
//               neighbouring outputs, and some reductions run by columns.
// A writer W    has `operator()(output, Acc)`.
// Order         chunks of fixed length, combined by a tree (kParts results per thread, warps,
//               block) and then by the same kernels over the chunks: a sum of n is a tree of about
//               log2 n levels. It depends only on sizes, the dtype and on whether rows or columns
//               are contiguous.
// In flight     a thread issues the loads of 2 to 4 packs before it joins the first.
namespace braid::cuda {

inline constexpr std::int64_t kThreadLength = 16;     // up to here one thread per output
inline constexpr std::int64_t kWarpLength = 512;      // up to here one warp
inline constexpr std::int64_t kBlockChunk = 4096;     // elements of a long row per block
inline constexpr int kColumns = 32, kColumnRows = 8;  // threads of a reduce_columns block
inline constexpr int kFlight = 16;
inline constexpr std::int64_t kColumnChunk = 128;  // rows of a reduce_columns block

/// Combines N partial results as a tree.
template <class R, int N>
BRAID_DEVICE typename R::Acc join_parts(const R& reducer, typename R::Acc (&part)[N]) {
#pragma unroll
  for (int width = N / 2; width > 0; width /= 2)
#pragma unroll
    for (int u = 0; u < width; ++u) part[u] = reducer.join(part[u], part[u + width]);
  return part[0];
}

/// Reduces the elements in [begin, end) of an output that belong to thread `rank` of `threads`:
/// packs rank, rank + threads, …, in R::kParts partial results.
template <class R, class L>
BRAID_DEVICE typename R::Acc reduce_part(const R& reducer, const L& load, std::int64_t base,
                                         std::int64_t begin, std::int64_t end, int rank,
                                         int threads) {
  constexpr int parts = R::kParts, pack = L::kPack, flight = pack < 4 ? 4 : kFlight / pack;
  using V = decltype(load.at(base, begin));
  typename R::Acc acc[parts];
#pragma unroll
  for (int u = 0; u < parts; ++u) acc[u] = reducer.none();
  const int apart = threads * pack;
  for (std::int64_t j = begin + rank * pack; j < end; j += flight * apart) {
    if (load.packs && j + (flight - 1) * apart + pack <= end) {
      V x[flight][pack];
#pragma unroll
      for (int f = 0; f < flight; ++f) load.pack(base, j + f * apart, x[f]);
#pragma unroll
      for (int f = 0; f < flight; ++f)
#pragma unroll
        for (int v = 0; v < pack; ++v)
          acc[(f * pack + v) % parts] = reducer.join(acc[(f * pack + v) % parts], x[f][v]);
    } else {
      // fewer at a time: computing an element's offset takes much code
      constexpr int some = pack < parts ? parts : pack;
#pragma unroll 1
      for (int f = 0; f < flight; f += some / pack)
#pragma unroll
        for (int u = 0; u < some; ++u) {
          const std::int64_t at = j + (f + u / pack) * apart + u % pack;
          if (at < end) acc[u % parts] = reducer.join(acc[u % parts], load.at(base, at));
        }
    }
  }
  return join_parts(reducer, acc);
}

template <class R>
BRAID_DEVICE typename R::Acc join_lanes(const R& reducer, typename R::Acc value, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2)
    value = reducer.join(value, reducer.shuffle(value, step));
  return value;
}

/// One thread or one warp per output: log_lanes is 0 or 5, n at most kWarpLength.
template <class R, class L, class W>
__global__ void __launch_bounds__(kThreads)
    reduce_lanes(R reducer, L load, W write, std::int64_t outputs, int n, int log_lanes) {
  const int lanes = 1 << log_lanes, rank = log_lanes == 0 ? 0 : lane_of_thread();
  for (std::int64_t e = grid_thread() >> log_lanes; e < outputs; e += grid_threads() >> log_lanes) {
    const auto value =
        join_lanes(reducer, reduce_part(reducer, load, load.base(e), 0, n, rank, lanes), lanes);
    if (rank == 0) write(e, value);
  }
}

/// One chunk of an output per block. If there are several chunks, the results go to `partial`
/// [outputs, chunks].
template <class R, class L, class W>
__global__ void __launch_bounds__(kThreads)
    reduce_blocks(R reducer, L load, W write, typename R::Acc* partial, std::int64_t items,
                  std::int64_t n, Divider chunks) {
  using Acc = typename R::Acc;
  SIMT_SHARED(Acc, part, [kWarps]);
  const bool narrow = items < std::int64_t{1} << 31;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t e = chunks.divide(item, narrow),
                       begin = (item - e * chunks.divisor) * kBlockChunk;
    const std::int64_t end = n - begin < kBlockChunk ? n : begin + kBlockChunk;
    const Acc own = join_lanes(reducer,
                               reduce_part(reducer, load, load.base(e), begin, end,
                                           static_cast<int>(threadIdx.x), kThreads),
                               32);
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

/// For outputs that are adjacent in memory: Width outputs per thread in accesses of 16 bytes, and
/// one chunk of their elements per block.
template <int Width, class R, class L, class W>
__global__ void __launch_bounds__(kColumns* kColumnRows)
    reduce_columns(R reducer, L load, W write, typename R::Acc* partial, std::int64_t outputs,
                   std::int64_t n, Divider tiles, std::int64_t chunks) {
  using Acc = typename R::Acc;
  constexpr int parts = R::kParts, across = kColumns * Width;
  SIMT_SHARED(Acc, part, [kColumnRows][across + 1]);
  const int tx = static_cast<int>(threadIdx.x) * Width, ty = static_cast<int>(threadIdx.y);
  const std::int64_t items = tiles.divisor * chunks;
  const bool narrow = items < std::int64_t{1} << 31;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t chunk = tiles.divide(item, narrow),
                       first = (item - chunk * tiles.divisor) * across,
                       begin = chunk * kColumnChunk;
    const std::int64_t end = n - begin < kColumnChunk ? n : begin + kColumnChunk;
    if (first + tx < outputs) {
      using V = decltype(load.at(first, begin));
      const std::int64_t base = load.base(first + tx);
      Acc acc[Width][parts];
#pragma unroll
      for (int v = 0; v < Width; ++v)
#pragma unroll
        for (int u = 0; u < parts; ++u) acc[v][u] = reducer.none();
      for (std::int64_t j = begin + ty; j < end; j += parts * kColumnRows) {
        V x[parts][Width];
#pragma unroll
        for (int u = 0; u < parts; ++u) {
          if (j + u * kColumnRows >= end) continue;
          if constexpr (Width > 1) load.beside(base, j + u * kColumnRows, x[u]);
          else x[u][0] = load.at(base, j + u * kColumnRows);
        }
#pragma unroll
        for (int u = 0; u < parts; ++u)
          if (j + u * kColumnRows < end)
#pragma unroll
            for (int v = 0; v < Width; ++v) acc[v][u] = reducer.join(acc[v][u], x[u][v]);
      }
#pragma unroll
      for (int v = 0; v < Width; ++v) part[ty][tx + v] = join_parts(reducer, acc[v]);
    }
    __syncthreads();
    for (int c = ty * kColumns + static_cast<int>(threadIdx.x); c < across;
         c += kColumns * kColumnRows) {
      if (first + c >= outputs) break;
      Acc all[kColumnRows];
#pragma unroll
      for (int k = 0; k < kColumnRows; ++k) all[k] = part[k][c];
      const Acc joined = join_parts(reducer, all);
      if (partial != nullptr) partial[(first + c) * chunks + chunk] = joined;
      else write(first + c, joined);
    }
    __syncthreads();  // the next chunk writes `part` again
  }
}

/// Loads results of chunks, or any contiguous rows of accumulators: element j of output e is p[e *
/// n + j].
template <class Acc> struct LoadDense {
  static constexpr int kPack = sizeof(Acc) <= 8 ? kWidest<Acc> : 1;
  static constexpr bool kSideBySide = false;
  const Acc* p;
  std::int64_t n;
  bool packs;
  BRAID_DEVICE std::int64_t base(std::int64_t e) const { return e * n; }
  BRAID_DEVICE Acc at(std::int64_t base, std::int64_t j) const { return p[base + j]; }
  BRAID_DEVICE void pack(std::int64_t base, std::int64_t j, Acc (&to)[kPack]) const {
    const auto from = load_pack<kPack>(p + base + j);
#pragma unroll
    for (int v = 0; v < kPack; ++v) to[v] = from.v[v];
  }
};
/// p comes from the allocator, so it is aligned.
template <class Acc> LoadDense<Acc> load_dense(const Acc* p, std::int64_t n) {
  return {p, n, n % LoadDense<Acc>::kPack == 0};
}

/// Queues the kernels of one reduction, n > 0. `columns` means that neighbouring outputs are closer
/// in memory than neighbouring elements of one output.
template <class R, class L, class W>
void reduce_all(const char* op, const R& reducer, const L& load, const W& write,
                std::int64_t outputs, std::int64_t n, bool columns, Stream& stream) {
  using Acc = typename R::Acc;
  if (outputs <= 0) return;
  if (const bool alone = n <= kThreadLength; alone || (!columns && n <= kWarpLength)) {
    const unsigned blocks = blocks_for(outputs, alone ? kThreads : kWarps);
    return run(op, reduce_lanes<R, L, W>, blocks, kThreads, stream, reducer, load, write, outputs,
               static_cast<int>(n), alone ? 0 : 5);
  }
  const std::int64_t chunk = columns ? kColumnChunk : kBlockChunk, chunks = (n - 1) / chunk + 1;
  const auto side_by_side = [&]<int Width>(std::integral_constant<int, Width>, Acc* partial) {
    const std::int64_t tiles = (outputs - 1) / (kColumns * Width) + 1;
    run(op, reduce_columns<Width, R, L, W>, blocks_for(tiles * chunks, 1),
        dim3(kColumns, kColumnRows), stream, reducer, load, write, partial, outputs, n,
        Divider(tiles), chunks);
  };
  const auto launch = [&](Acc* partial) {
    if constexpr (L::kSideBySide) {
      if (columns && load.beside_packs)
        return side_by_side(std::integral_constant<int, L::kPack>{}, partial);
      if (columns) return side_by_side(std::integral_constant<int, 1>{}, partial);
    }
    run(op, reduce_blocks<R, L, W>, blocks_for(outputs * chunks, 1), kThreads, stream, reducer,
        load, write, partial, outputs * chunks, n, Divider(chunks));
  };
  if (chunks == 1) return launch(nullptr);
  const Scratch scratch(static_cast<std::size_t>(outputs * chunks) * sizeof(Acc), stream);
  Acc* const partial = static_cast<Acc*>(scratch.data());
  launch(partial);
  reduce_all(op, reducer, load_dense<Acc>(partial, chunks), write, outputs, chunks, false, stream);
}

/// Sums in A.
template <class A> struct SumReducer {
  using Acc = A;
  static constexpr int kParts = 4;
  BRAID_DEVICE Acc none() const { return A(0); }
  BRAID_DEVICE Acc join(Acc a, Acc b) const { return a + b; }
  BRAID_DEVICE Acc shuffle(Acc value, int step) const {
    return __shfl_xor_sync(kFullWarp, value, step);
  }
};

/// Stores scale * sum in E, rounded once (16-bit types: to float first). Adding 0.0 turns a sum of
/// -0 into 0.
template <class E> struct WriteSum {
  typename E::T* out;
  double scale;
  DeviceLoop<1> keep;
  BRAID_DEVICE void operator()(std::int64_t e, typename E::A sum) const {
    out[offsets_of(keep, e).at[0]] =
        E::from_double(multiply(static_cast<double>(sum), scale) + 0.0);
  }
};

/// The offsets of a tensor's elements: outputs are the elements of `keep` (operand 1 of the op's
/// loop), the reduced elements those of `over`.
struct Places {
  DeviceLoop<1> keep, over;
  bool packs, beside_packs;  // packs of an output's elements, of neighbouring outputs' elements
  BRAID_DEVICE std::int64_t base(std::int64_t e) const { return offsets_of(keep, e).at[0]; }
  BRAID_DEVICE std::int64_t offset(std::int64_t j) const { return offsets_of(over, j).at[0]; }
};
/// A pack is `pack` elements of `bytes` each, which are read in one access.
inline Places places_of(const ReduceArgs& args, int pack, std::size_t bytes) {
  const std::size_t all = static_cast<std::size_t>(pack) * bytes;
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.x) % (all < 16 ? all : 16) == 0;
  const auto whole = [&](const Loop& loop, int dims) {  // strides of the outer dims
    for (int d = 0; d < dims; ++d)
      if (loop.stride[1][d] % pack != 0) return false;
    return true;
  };
  const auto inner = [&](const Loop& loop) {
    return loop.rank > 0 && loop.stride[1][loop.rank - 1] == 1 &&
           loop.size[loop.rank - 1] % pack == 0;
  };
  const Loop &keep = args.keep, &over = args.over;
  const bool row = over.rank == 1 && over.stride[1][0] == 1;  // of any length
  return {make_loop<1>(keep, 1), make_loop<1>(over, 1), aligned && row && whole(keep, keep.rank),
          aligned && inner(keep) && whole(keep, keep.rank - 1) && whole(over, over.rank)};
}

template <class E, class V> struct LoadTensor : Places {
  static constexpr int kPack = kWidest<typename E::T>;
  static constexpr bool kSideBySide = true;
  const typename E::T* x;
  explicit LoadTensor(const ReduceArgs& args)
      : Places(places_of(args, kPack, sizeof(typename E::T))),
        x(static_cast<const typename E::T*>(args.x)) {}
  BRAID_DEVICE V at(std::int64_t base, std::int64_t j) const {
    return static_cast<V>(E::load(x[base + offset(j)]));
  }
  BRAID_DEVICE void pack(std::int64_t base, std::int64_t j, V (&to)[kPack]) const {
    read(base + j, to);
  }
  BRAID_DEVICE void beside(std::int64_t base, std::int64_t j, V (&to)[kPack]) const {
    read(base + offset(j), to);
  }

 private:
  BRAID_DEVICE void read(std::int64_t i, V (&to)[kPack]) const {
    const auto from = load_pack<kPack>(x + i);
#pragma unroll
    for (int v = 0; v < kPack; ++v) to[v] = static_cast<V>(E::load(from.v[v]));
  }
};

/// The same for integers and bool of any size, selected at run time, so that one set of kernels
/// serves all.
template <class V> struct LoadIntegers : Places {
  static constexpr int kPack = 4;
  static constexpr bool kSideBySide = true;
  const void* x;
  DType dtype;
  explicit LoadIntegers(const ReduceArgs& args)
      : Places(places_of(args, kPack, size_of(args.dtype))), x(args.x), dtype(args.dtype) {}
  BRAID_DEVICE V at(std::int64_t base, std::int64_t j) const {
    const std::int64_t i = base + offset(j);
    if (dtype == DType::int64) return static_cast<V>(static_cast<const std::int64_t*>(x)[i]);
    if (dtype == DType::int32) return static_cast<V>(static_cast<const std::int32_t*>(x)[i]);
    return static_cast<V>(static_cast<const std::uint8_t*>(x)[i]);
  }
  BRAID_DEVICE void pack(std::int64_t base, std::int64_t j, V (&to)[kPack]) const {
    read(base + j, to);
  }
  BRAID_DEVICE void beside(std::int64_t base, std::int64_t j, V (&to)[kPack]) const {
    read(base + offset(j), to);
  }

 private:
  BRAID_DEVICE void read(std::int64_t i, V (&to)[kPack]) const {
    if (dtype == DType::int64) read_as<std::int64_t>(i, to);
    else if (dtype == DType::int32) read_as<std::int32_t>(i, to);
    else read_as<std::uint8_t>(i, to);
  }
  template <class T> BRAID_DEVICE void read_as(std::int64_t i, V (&to)[kPack]) const {
    const auto from = load_pack<kPack>(static_cast<const T*>(x) + i);
#pragma unroll
    for (int v = 0; v < kPack; ++v) to[v] = static_cast<V>(from.v[v]);
  }
};

/// True if neighbouring outputs are closer in memory than neighbouring elements.
inline bool by_columns(const ReduceArgs& args) {
  const auto step = [](const Loop& loop) {
    const std::int64_t stride = loop.rank == 0 ? INT64_MAX : loop.stride[1][loop.rank - 1];
    return stride < 0 ? -stride : stride;
  };
  return args.keep.n >= 8 && step(args.keep) != 0 && step(args.keep) < step(args.over);
}

}  // namespace braid::cuda
