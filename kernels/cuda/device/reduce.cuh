#pragma once
#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/tickets.cuh"

// Reductions of `n` elements to each of `outputs` results.
// A reducer R   has `Acc`, `kParts` (a power of two), `Acc none() const`,
//               `Acc join(Acc a, Acc b) const` (commutative) and `Acc shuffle(Acc, step)`: the
//               value of lane ^ step.
// A loader L    has `base(output)` and `at(base, j)`: element j of an output. If `packs`,
//               `pack(base, j, to)` loads kPack neighbouring elements from a multiple of kPack on,
//               in accesses of 16 bytes. With `kSideBySide`, `beside` also loads elements j of
//               neighbouring outputs, and some reductions run by columns.
// A writer W    has `operator()(output, Acc)`.
// Order         chunks whose length depends on n, combined by a tree (kParts results per thread,
//               warps, block). The last block of up to kBlockChunk (kColumnChunk) of them joins
//               their results in the same way, and so on: a sum of n is a tree of about log2 n
//               levels, in one launch. It depends only on sizes, the dtype and on whether rows or
//               columns are contiguous.
// In flight     a thread issues the loads of 2 to 4 packs before it joins the first.
namespace braid::cuda {

inline constexpr std::int64_t kThreadLength = 16;     // up to here one thread per output
inline constexpr std::int64_t kWarpLength = 512;      // up to here one warp
inline constexpr int kBlockChunk = 4096;              // of a long row that a block reduces at once
inline constexpr int kColumns = 32, kColumnRows = 8;  // threads of a reduce_columns block
inline constexpr int kFlight = 16;
inline constexpr std::int64_t kColumnChunk = 128;  // rows of a reduce_columns block
inline constexpr int kMostLevels = 6;              // of a tree of chunks

/// How many elements of a row of n a block reduces before it has to wait until its result is
/// written and counted. Rows of 2^24 have enough blocks if each reduces four chunks, and, above
/// that and up to 2^26, one level of the tree less. A result of more than 8 bytes (an index) leaves
/// no registers for that.
template <class R> BRAID_HOST_DEVICE std::int64_t block_length(std::int64_t n) {
  if constexpr (sizeof(typename R::Acc) > 8) return kBlockChunk;
  else return n < std::int64_t{1} << 24 ? kBlockChunk : 4 * kBlockChunk;
}

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

/// The threads that reduce one output in reduce_lanes; the value is the logarithm of their number.
enum class Team : int { thread = 0, warp = 5 };

/// One thread or one warp per output; n is at most kWarpLength.
template <class R, class L, class W>
__global__ void __launch_bounds__(kThreads)
    reduce_lanes(R reducer, L load, W write, std::int64_t outputs, int n, Team team) {
  const int log_lanes = static_cast<int>(team), lanes = 1 << log_lanes;
  const int rank = team == Team::thread ? 0 : lane_of_thread();
  for (std::int64_t e = grid_thread() >> log_lanes; e < outputs; e += grid_threads() >> log_lanes) {
    const auto value =
        join_lanes(reducer, reduce_part(reducer, load, load.base(e), 0, n, rank, lanes), lanes);
    if (rank == 0) write(e, value);
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

/// Where the results of chunks go that are joined by later blocks: at `results`, those of each
/// level of the tree after another, and with a counter for each group of chunks.
template <class Acc> struct ChunkTree {
  Acc* results;
  unsigned* counters;
};

/// Joins the results of a block of kThreads threads. Thread 0 gets the result.
template <class R>
BRAID_DEVICE typename R::Acc join_block(const R& reducer, typename R::Acc own,
                                        typename R::Acc* part) {
  own = join_lanes(reducer, own, 32);
  if (lane_of_thread() == 0) part[warp_of_thread()] = own;
  __syncthreads();
  if (warp_of_thread() == 0) own = join_lanes(reducer, part[lane_of_thread() % kWarps], kWarps);
  return own;
}

/// Reduces an output of n <= kBlockChunk elements with a block of kThreads threads, in the order in
/// which reduce_all does it, if none() joined to a value leaves it as it is. Thread 0 gets the
/// result. For a kernel whose last block reduces what the others have written.
template <class R, class L>
BRAID_DEVICE typename R::Acc reduce_in_block(const R& reducer, const L& load, int n,
                                             typename R::Acc* part) {
  const int threads = n <= kThreadLength ? 1
                      : n <= kWarpLength ? 32
                                         : kThreads,
            rank = static_cast<int>(threadIdx.x);
  typename R::Acc own = reducer.none();
  if (rank < threads) own = reduce_part(reducer, load, load.base(0), 0, n, rank, threads);
  return join_block(reducer, own, part);
}

/// One chunk of an output per block. The last block of a group of chunks joins them. For results
/// of more than 8 bytes nvcc would choose 48 registers and spill; four blocks of an SM leave 64.
template <class R, class L, class W>
__global__ void __launch_bounds__(kThreads, (sizeof(typename R::Acc) > 8 ? 4 : 0))
    reduce_blocks(R reducer, L load, W write, ChunkTree<typename R::Acc> tree, std::int64_t outputs,
                  std::int64_t n, Divider chunks) {
  using Acc = typename R::Acc;
  SIMT_SHARED(Acc, part, [kWarps]);
  const std::int64_t items = outputs * chunks.divisor;
  const bool narrow = items < std::int64_t{1} << 31;
  const int rank = static_cast<int>(threadIdx.x);
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t e = chunks.divide(item, narrow);
    std::int64_t chunk = item - e * chunks.divisor, count = chunks.divisor;
    const std::int64_t length = block_length<R>(n), begin = chunk * length,
                       end = n - begin < length ? n : begin + length;
    Acc own = reducer.none();
    if constexpr (sizeof(Acc) > 8) {
      own = reduce_part(reducer, load, load.base(e), begin, end, rank, kThreads);
    } else {
      std::int64_t from = begin;  // an `int` counts, because 64 bits take two registers
#pragma unroll 1
      for (int left = static_cast<int>(end - begin); left > 0; left -= kBlockChunk) {
        const std::int64_t to = from + (left < kBlockChunk ? left : kBlockChunk);
        own = reducer.join(own, reduce_part(reducer, load, load.base(e), from, to, rank, kThreads));
        from += kBlockChunk;
      }
    }
    Acc all = join_block(reducer, own, part);
    Acc* results = tree.results;
    unsigned* counters = tree.counters;
    while (count > 1) {
      if (rank == 0) results[e * count + chunk] = all;
      const std::int64_t groups = (count - 1) / kBlockChunk + 1, first = chunk / kBlockChunk;
      const std::int64_t from = first * kBlockChunk,
                         to = count - from < kBlockChunk ? count : from + kBlockChunk;
      if (!arrives_last(counters + e * groups + first, static_cast<unsigned>(to - from))) break;
      const LoadDense<Acc> dense{results, count, count % LoadDense<Acc>::kPack == 0};
      all = join_block(reducer,
                       reduce_part(reducer, dense, dense.base(e), from, to, rank, kThreads), part);
      results += (outputs * count + 3) / 4 * 4;  // aligned
      counters += outputs * groups;
      chunk = first, count = groups;
    }
    if (count == 1 && rank == 0) write(e, all);
    __syncthreads();  // the next chunk writes `part` again
  }
}

/// The columns of a tile that a thread of reduce_columns loads: its `Width` columns, of the rows in
/// [begin, end) each kColumnRows-th one. row(j, to) loads those of row j. Sums are left in `part`.
template <int Width, class V, class R, class Row, class Part>
BRAID_DEVICE void reduce_rows(const R& reducer, std::int64_t begin, std::int64_t end, Part& part,
                              Row row) {
  using Acc = typename R::Acc;
  constexpr int parts = R::kParts;
  const int tx = static_cast<int>(threadIdx.x) * Width, ty = static_cast<int>(threadIdx.y);
  Acc acc[Width][parts];
#pragma unroll
  for (int v = 0; v < Width; ++v)
#pragma unroll
    for (int u = 0; u < parts; ++u) acc[v][u] = reducer.none();
  for (std::int64_t j = begin + ty; j < end; j += parts * kColumnRows) {
    V x[parts][Width];
#pragma unroll
    for (int u = 0; u < parts; ++u)
      if (j + u * kColumnRows < end) row(j + u * kColumnRows, x[u]);
#pragma unroll
    for (int u = 0; u < parts; ++u)
      if (j + u * kColumnRows < end)
#pragma unroll
        for (int v = 0; v < Width; ++v) acc[v][u] = reducer.join(acc[v][u], x[u][v]);
  }
#pragma unroll
  for (int v = 0; v < Width; ++v) part[ty][tx + v] = join_parts(reducer, acc[v]);
}

/// For outputs that are adjacent in memory, a multiple of Width: Width outputs per thread in
/// accesses of 16 bytes, and one chunk of their elements per block. The last block of kColumnChunk
/// chunks joins them.
template <int Width, class R, class L, class W>
__global__ void __launch_bounds__(kColumns* kColumnRows)
    reduce_columns(R reducer, L load, W write, ChunkTree<typename R::Acc> tree,
                   std::int64_t outputs, std::int64_t n, Divider tiles, std::int64_t chunks) {
  using Acc = typename R::Acc;
  constexpr int across = kColumns * Width;
  SIMT_SHARED(Acc, part, [kColumnRows][across + 1]);
  const int tx = static_cast<int>(threadIdx.x) * Width,
            rank = static_cast<int>(threadIdx.y) * kColumns + static_cast<int>(threadIdx.x);
  const std::int64_t items = tiles.divisor * chunks;
  const bool narrow = items < std::int64_t{1} << 31;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    std::int64_t chunk = tiles.divide(item, narrow), count = chunks;
    const std::int64_t tile = item - chunk * tiles.divisor, first = tile * across,
                       begin = chunk * kColumnChunk,
                       end = n - begin < kColumnChunk ? n : begin + kColumnChunk;
    if (first + tx < outputs) {
      const std::int64_t base = load.base(first + tx);
      using V = decltype(load.at(first, begin));
      reduce_rows<Width, V>(reducer, begin, end, part, [&](std::int64_t j, V(&to)[Width]) {
        if constexpr (Width > 1) load.beside(base, j, to);
        else to[0] = load.at(base, j);
      });
    }
    __syncthreads();
    // Gives the columns' sums to `use`.
    const auto columns = [&](auto use) {
      for (int c = rank; c < across && first + c < outputs; c += kColumns * kColumnRows) {
        Acc all[kColumnRows];
#pragma unroll
        for (int k = 0; k < kColumnRows; ++k) all[k] = part[k][c];
        use(first + c, join_parts(reducer, all));
      }
    };
    Acc* results = tree.results;
    unsigned* counters = tree.counters;
    while (count > 1) {
      columns([&](std::int64_t e, Acc all) { results[chunk * outputs + e] = all; });
      __syncthreads();  // one thread tells the others of all these results
      const std::int64_t groups = (count - 1) / kColumnChunk + 1, group = chunk / kColumnChunk;
      const std::int64_t from = group * kColumnChunk,
                         to = count - from < kColumnChunk ? count : from + kColumnChunk;
      if (!arrives_last(counters + tile * groups + group, static_cast<unsigned>(to - from))) break;
      if (first + tx < outputs)
        reduce_rows<Width, Acc>(reducer, from, to, part, [&](std::int64_t j, Acc(&x)[Width]) {
#pragma unroll
          for (int v = 0; v < Width; ++v) x[v] = results[j * outputs + first + tx + v];
        });
      __syncthreads();
      results += outputs * count, counters += tiles.divisor * groups;
      chunk = group, count = groups;
    }
    if (count == 1) columns(write);
    __syncthreads();  // the next chunk writes `part` again
  }
}

/// What a tree over `chunks` results, of which a block joins `most`, needs for each output (or tile
/// of columns): results, and counters.
struct TreeSize {
  std::int64_t results = 0, counters = 0;
  TreeSize(std::int64_t chunks, std::int64_t most) {
    while (chunks > 1) {
      results += chunks;
      chunks = (chunks - 1) / most + 1;
      counters += chunks;
    }
  }
};

/// Queues the kernel of one reduction, n > 0. `columns` means that neighbouring outputs are closer
/// in memory than neighbouring elements of one output.
template <class R, class L, class W>
void reduce_all(const char* op, const R& reducer, const L& load, const W& write,
                std::int64_t outputs, std::int64_t n, bool columns, Stream& stream) {
  using Acc = typename R::Acc;
  if (outputs <= 0) return;
  if (const bool alone = n <= kThreadLength; alone || (!columns && n <= kWarpLength)) {
    const unsigned blocks = blocks_for(outputs, alone ? kThreads : kWarps);
    return run(op, reduce_lanes<R, L, W>, blocks, kThreads, stream, reducer, load, write, outputs,
               static_cast<int>(n), alone ? Team::thread : Team::warp);
  }
  const std::int64_t length = columns ? kColumnChunk : block_length<R>(n),
                     chunks = (n - 1) / length + 1;
  const auto with_tree = [&](std::int64_t items, const auto& launch) {
    if (chunks == 1) return launch(ChunkTree<Acc>{});
    const TreeSize each(chunks, columns ? kColumnChunk : kBlockChunk);
    const auto results =
        static_cast<std::size_t>(outputs * each.results + 4 * kMostLevels) * sizeof(Acc);
    // The stream's counters need no launch that clears them.
    const bool few = items * each.counters <= kTickets;
    const auto counters =
        few ? 0 : static_cast<std::size_t>(items * each.counters) * sizeof(unsigned);
    const Scratch scratch(results + counters, stream);
    auto* const own = reinterpret_cast<unsigned*>(static_cast<char*>(scratch.data()) + results);
    if (!few) set_zero(op, own, counters, stream);
    launch(ChunkTree<Acc>{static_cast<Acc*>(scratch.data()), few ? tickets_of(stream) : own});
  };
  if constexpr (L::kSideBySide) {
    const auto side_by_side = [&]<int Width>(std::integral_constant<int, Width>) {
      const std::int64_t tiles = (outputs - 1) / (kColumns * Width) + 1;
      with_tree(tiles, [&](const ChunkTree<Acc>& tree) {
        run(op, reduce_columns<Width, R, L, W>, blocks_for(tiles * chunks, 1),
            dim3(kColumns, kColumnRows), stream, reducer, load, write, tree, outputs, n,
            Divider(tiles), chunks);
      });
    };
    if (columns && load.beside_packs) return side_by_side(std::integral_constant<int, L::kPack>{});
    if (columns) return side_by_side(std::integral_constant<int, 1>{});
  }
  with_tree(outputs, [&](const ChunkTree<Acc>& tree) {
    run(op, reduce_blocks<R, L, W>, blocks_for(outputs * chunks, 1), kThreads, stream, reducer,
        load, write, tree, outputs, n, Divider(chunks));
  });
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

}  // namespace braid::cuda
