#include "cuda/index_runs.hpp"

#include <braid/core/internal/kernel_args/sort.hpp>

#include "cuda/device/add.cuh"
#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/report.cuh"
#include "cuda/kernels.hpp"

// The gradient of an embedding: rows are added to a table at indices of which a few may be most.
// The indices are sorted, so that equal ones are a run; so are those of a scatter_add of long lines
// (gather_sorted.cu). Entries of the sorted list are cut into chunks of 32, a warp each. A run
// inside one chunk is added to the table. Of a run that continues in another chunk, the sum of its
// part becomes an entry of the next level, which has at most two entries for each chunk, is sorted
// too, and is summed in the same way.
// Order   the sort is stable, chunks begin at multiples of 32, and each is summed in order: no bit
//         depends on the device.
namespace braid::cuda {

inline constexpr int kChunk = 32;  // entries; a lane holds the key of one

/// keys[i] = the table's row of index i; table_rows if it is outside, which is reported.
__global__ void __launch_bounds__(kThreads)
    row_keys(const std::int64_t* index, std::int64_t table_rows, std::int64_t rows,
             std::int64_t* keys, FaultSite site) {
  for (std::int64_t i = grid_thread(); i < rows; i += grid_threads()) {
    const std::int64_t wanted = index[i];
    const bool good = wanted >= -table_rows && wanted < table_rows;
    if (!good) report(site, DeviceFault::index, -table_rows, table_rows, wanted, i);
    keys[i] = !good ? table_rows : wanted < 0 ? wanted + table_rows : wanted;
  }
}

/// The entries of a level. One without a row, only to keep the list sorted, has the bits of its key
/// inverted. Entry i has row places[i], or i if there are no places.
using RunLevel = SortedRows;
/// The entries of the next level: 2 c and 2 c + 1 for the first and the last run of chunk c.
template <class A> struct NextLevel {
  std::int64_t* keys;
  A* rows;
};

BRAID_DEVICE std::int64_t key_of_entry(std::int64_t stored) {
  return stored < 0 ? ~stored : stored;
}

/// The keys of a chunk, for all lanes.
struct Chunk {
  std::int64_t key;  // of this lane's entry
  int count;         // of entries
  unsigned ends;     // bits of the entries at which a run ends
  unsigned full;     // bits of the entries that have a row
  bool continues;    // the first run began in an earlier chunk
  bool continued;    // the last run goes on in the next one
};
BRAID_DEVICE Chunk chunk_at(const RunLevel& level, std::int64_t begin, std::int64_t table_rows) {
  const int lane = lane_of_thread();
  const std::int64_t left = level.entries - begin;
  Chunk chunk;
  chunk.count = left < kChunk ? static_cast<int>(left) : kChunk;
  const std::int64_t stored = lane < chunk.count ? level.keys[begin + lane] : -1;
  chunk.key = key_of_entry(stored);
  const std::int64_t next = __shfl_down_sync(kFullWarp, chunk.key, 1);
  const bool last = lane == chunk.count - 1;
  chunk.ends = __ballot_sync(kFullWarp, lane < chunk.count && (last || next != chunk.key));
  chunk.full = __ballot_sync(kFullWarp, stored >= 0 && chunk.key < table_rows);
  const std::int64_t first_key = __shfl_sync(kFullWarp, chunk.key, 0),
                     last_key = __shfl_sync(kFullWarp, chunk.key, chunk.count - 1);
  chunk.continues = begin > 0 && key_of_entry(level.keys[begin - 1]) == first_key;
  chunk.continued = left > kChunk && key_of_entry(level.keys[begin + kChunk]) == last_key;
  return chunk;
}

/// A warp sums a chunk for 32 packs of N columns. `Row` is the type of the level's rows.
template <class E, class Row, int N>
__global__ void __launch_bounds__(kThreads, 2)
    add_runs(typename E::T* table, std::int64_t table_rows, std::int64_t width, RunLevel level,
             NextLevel<typename E::A> next) {
  using A = typename E::A;
  // rows that are loaded before the first is added: as many as fit in registers
  constexpr int together = N == 8 ? 4 : 8;
  const int lane = lane_of_thread();
  const Row* const rows = static_cast<const Row*>(level.rows);
  const std::int64_t tiles = (width - 1) / (32 * N) + 1, chunks = (level.entries - 1) / kChunk + 1,
                     warps = static_cast<std::int64_t>(gridDim.x) * kWarps;
  for (std::int64_t work = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_of_thread();
       work < chunks * tiles; work += warps) {
    const std::int64_t c = work / tiles, tile = work - c * tiles, begin = c * kChunk,
                       column = (tile * 32 + lane) * N;
    const bool mine = column < width;
    const Chunk chunk = chunk_at(level, begin, table_rows);
    const std::int64_t place = lane >= chunk.count ? 0
                               : level.places      ? level.places[begin + lane]
                                                   : begin + lane;
    A sum[N];
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] = A(0);
    unsigned of_run = 0, head = 0, tail = 0;  // bits of the entries that were added
#pragma unroll 1
    for (int from = 0; from < chunk.count; from += together) {
      Pack<Row, N> pack[together];
#pragma unroll
      for (int u = 0; u < together; ++u) {
        const std::int64_t row = __shfl_sync(kFullWarp, place, (from + u) % 32);
        if (mine && (chunk.full >> (from + u) & 1u) != 0)
          pack[u] = load_pack<N>(rows + row * width + column);
      }
#pragma unroll
      for (int u = 0; u < together; ++u) {
        const unsigned bit = 1u << (from + u);
        const std::int64_t key = __shfl_sync(kFullWarp, chunk.key, (from + u) % 32);
        if (mine && (chunk.full & bit) != 0) {
#pragma unroll
          for (int k = 0; k < N; ++k) {
            if constexpr (std::is_same_v<Row, A>) sum[k] = added<E>(sum[k], pack[u].v[k]);
            else sum[k] += E::load(pack[u].v[k]);
          }
        }
        of_run |= chunk.full & bit;
        if ((chunk.ends & bit) == 0) continue;
        const bool front = chunk.continues && (chunk.ends & (bit - 1)) == 0,
                   back = chunk.continued && from + u == chunk.count - 1;
        if (front) head = of_run;
        else if (back) tail = of_run;
        if (mine && of_run != 0) {
          if (front || back) {
            Pack<A, N> part;
#pragma unroll
            for (int k = 0; k < N; ++k) part.v[k] = sum[k];
            store_pack(next.rows + (2 * c + (front ? 0 : 1)) * width + column, part);
          } else {
            typename E::T* const to = table + key * width + column;
            auto old = load_pack<N>(to);
#pragma unroll
            for (int k = 0; k < N; ++k) old.v[k] = E::store(added<E>(E::load(old.v[k]), sum[k]));
            store_pack(to, old);
          }
        }
        of_run = 0;
#pragma unroll
        for (int k = 0; k < N; ++k) sum[k] = A(0);
      }
    }
    if (tile != 0 || chunks == 1) continue;
    if (lane == 0) next.keys[2 * c] = head != 0 ? chunk.key : ~chunk.key;
    if (lane == chunk.count - 1) next.keys[2 * c + 1] = tail != 0 ? chunk.key : ~chunk.key;
  }
}

/// Entries of the level after one with these entries.
std::int64_t next_entries(std::int64_t entries) { return 2 * ((entries - 1) / kChunk + 1); }

void add_sorted_rows(const char* op, DType dtype, void* to, std::int64_t table_rows,
                     std::int64_t width, const SortedRows& sorted, Stream& stream) {
  with_element(dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    // two levels at a time: one is read, the next one written
    const std::int64_t most[] = {next_entries(sorted.entries),
                                 next_entries(next_entries(sorted.entries))};
    const std::size_t a_row = static_cast<std::size_t>(width) * sizeof(A);
    const Scratch sums(static_cast<std::size_t>(most[0] + most[1]) * (a_row + sizeof(std::int64_t)),
                       stream);
    std::int64_t* const first_keys = static_cast<std::int64_t*>(sums.data());
    A* const first = reinterpret_cast<A*>(first_keys + most[0] + most[1]);
    const NextLevel<A> buffers[] = {{first_keys, first},
                                    {first_keys + most[0], first + most[0] * width}};
    T* const table = static_cast<T*>(to);
    constexpr int wide = E::kFloating ? kWidest<T> : 1;
    const bool packs = width % wide == 0 && is_aligned<wide>(table) &&
                       is_aligned<wide>(static_cast<const T*>(sorted.rows));
    const auto add = [&]<class Row>(const RunLevel& level, const NextLevel<A>& next) {
      const std::int64_t columns = packs ? 32 * wide : 32,
                         warps = ((level.entries - 1) / kChunk + 1) * ((width - 1) / columns + 1);
      run(op, packs ? add_runs<E, Row, wide> : add_runs<E, Row, 1>, blocks_for(warps, kWarps),
          kThreads, stream, table, table_rows, width, level, next);
    };
    add.template operator()<T>(sorted, buffers[0]);
    std::int64_t entries = sorted.entries;
    for (int which = 0; entries > kChunk; which ^= 1) {
      entries = next_entries(entries);
      const NextLevel<A>& from = buffers[which];
      add.template operator()<A>({from.keys, nullptr, from.rows, entries}, buffers[which ^ 1]);
    }
  });
}

void scatter_add_runs(const ScatterAddRowsArgs& args, const FaultSite& site, Stream& stream) {
  const std::int64_t rows = args.rows;
  const Scratch lists(3 * static_cast<std::size_t>(rows) * sizeof(std::int64_t), stream);
  std::int64_t* const keys = static_cast<std::int64_t*>(lists.data());
  std::int64_t *const sorted = keys + rows, *const places = sorted + rows;
  run("scatter_add_rows", row_keys, blocks_for(rows, kThreads), kThreads, stream, args.index,
      args.table_rows, rows, keys, site);
  sort({DType::int64, keys, sorted, places, 1, rows, rows, false}, stream);
  add_sorted_rows("scatter_add_rows", args.dtype, args.table, args.table_rows, args.width,
                  {sorted, places, args.dy, rows}, stream);
}

}  // namespace braid::cuda
