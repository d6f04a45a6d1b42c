#include "cuda/sort.hpp"

#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/kernels.hpp"

// Stable sorts of rows by keys: unsigned numbers that are ordered as the elements, with their
// indices to break ties. Tiles are sorted in shared memory by a bitonic network (Batcher 1968)
// whose every step is ascending. Then runs are merged in pairs: each entry finds its position in
// the merged run by a binary search in the other run.
namespace braid::cuda {

struct alignas(16) Entry {  // read and written in one access
  unsigned long long key;
  long long place;
};
constexpr unsigned long long kLastKey = ~0ull;
constexpr int kTileEntries = 1024;

BRAID_DEVICE bool goes_before(const Entry& a, const Entry& b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

BRAID_DEVICE std::uint32_t float_bits(float x) {
  std::uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
/// Unsigned bits that are ordered as the numbers: NaNs are last and all equal, -0 equals 0.
BRAID_DEVICE unsigned long long key_of_float(float x) {
  if (is_nan(x)) return 0xffffffffu;
  const std::uint32_t u = float_bits(x == 0.0f ? 0.0f : x);
  return (u >> 31) != 0 ? ~u : u | 0x80000000u;
}
BRAID_DEVICE unsigned long long key_of_double(double x) {
  if (is_nan(x)) return kLastKey;
  const double positive_zero = x == 0.0 ? 0.0 : x;
  unsigned long long u;
  memcpy(&u, &positive_zero, sizeof u);
  return (u >> 63) != 0 ? ~u : u | (1ull << 63);
}
BRAID_DEVICE unsigned long long key_at(const void* x, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::float32: return key_of_float(static_cast<const float*>(x)[i]);
    case DType::float64: return key_of_double(static_cast<const double*>(x)[i]);
    case DType::float16: return key_of_float(F16::load(static_cast<const F16::T*>(x)[i]));
    case DType::bfloat16: return key_of_float(BF16::load(static_cast<const BF16::T*>(x)[i]));
    case DType::int64:
      return static_cast<unsigned long long>(static_cast<const std::int64_t*>(x)[i]) ^ (1ull << 63);
    case DType::int32:
      return static_cast<std::uint32_t>(static_cast<const std::int32_t*>(x)[i]) ^ 0x80000000u;
    default: return static_cast<const std::uint8_t*>(x)[i];
  }
}

/// Writes entry i of a sorted row, if it is among the first k.
BRAID_DEVICE void write(const SortArgs& args, std::int64_t row, std::int64_t i,
                        std::int64_t place) {
  if (i >= args.k) return;
  const std::int64_t from = row * args.n + place, to = row * args.k + i;
  args.index[to] = place;
  switch (args.dtype) {
    case DType::bool_:
    case DType::uint8:
      static_cast<std::uint8_t*>(args.values)[to] = static_cast<const std::uint8_t*>(args.x)[from];
      break;
    case DType::float16:
    case DType::bfloat16:
      static_cast<std::uint16_t*>(args.values)[to] =
          static_cast<const std::uint16_t*>(args.x)[from];
      break;
    case DType::int32:
    case DType::float32:
      static_cast<std::uint32_t*>(args.values)[to] =
          static_cast<const std::uint32_t*>(args.x)[from];
      break;
    default:
      static_cast<std::uint64_t*>(args.values)[to] =
          static_cast<const std::uint64_t*>(args.x)[from];
  }
}

/// Sorts segments (whole rows, or parts of kTileEntries of a row) of up to `width` entries, a power
/// of two, as many as fit in a tile. Whole rows are written as results, others as runs to
/// `entries`.
__global__ void __launch_bounds__(kThreads)
    sort_tiles(SortArgs args, Entry* entries, std::int64_t segments, std::int64_t in_row,
               int width) {
  SIMT_SHARED(Entry, tile, [kTileEntries]);
  const int together = kTileEntries / width;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * together; first < segments;
       first += static_cast<std::int64_t>(gridDim.x) * together) {
    for (int s = static_cast<int>(threadIdx.x); s < kTileEntries; s += kThreads) {
      const std::int64_t segment = first + s / width, row = segment / in_row,
                         place = (segment - row * in_row) * kTileEntries + s % width;
      const bool there = segment < segments && place < args.n;
      tile[s] = there ? Entry{key_at(args.x, args.dtype, row * args.n + place) ^
                                  (args.descending ? kLastKey : 0ull),
                              static_cast<long long>(place)}
                      : Entry{kLastKey, INT64_MAX};
    }
    __syncthreads();
    for (int size = 2; size <= width; size *= 2) {
      for (int apart = size / 2; apart > 0; apart /= 2) {
        for (int p = static_cast<int>(threadIdx.x); p < kTileEntries / 2; p += kThreads) {
          const int i = p / apart * 2 * apart + p % apart;
          // The first step of a merge compares with the mirrored half, so that both halves may be
          // ascending.
          const int j = apart == size / 2 ? i / size * size + size - 1 - i % size : i + apart;
          const Entry a = tile[i], b = tile[j];
          if (goes_before(b, a)) tile[i] = b, tile[j] = a;
        }
        __syncthreads();
      }
    }
    for (int s = static_cast<int>(threadIdx.x); s < kTileEntries; s += kThreads) {
      const std::int64_t segment = first + s / width, row = segment / in_row,
                         at = (segment - row * in_row) * kTileEntries + s % width;
      if (segment >= segments || at >= args.n) continue;
      if (in_row == 1) write(args, row, at, tile[s].place);
      else entries[row * args.n + at] = tile[s];
    }
    __syncthreads();  // the next tile is written over this one
  }
}

/// Merges runs of `width` entries in pairs, from one buffer to the other.
__global__ void __launch_bounds__(kThreads)
    merge_runs(const Entry* from, Entry* to, std::int64_t all, std::int64_t n, std::int64_t width) {
  for (std::int64_t e = grid_thread(); e < all; e += grid_threads()) {
    const std::int64_t row = e / n, i = e - row * n, run = i / width, other = (run ^ 1) * width,
                       base = (run & ~std::int64_t{1}) * width;
    const Entry own = from[e];
    std::int64_t low = 0, high = n - other < width ? n - other : width;
    if (high < 0) high = 0;
    const Entry* const partner = from + row * n + other;
    while (low < high) {  // counts the entries of the other run that come before this one
      const std::int64_t middle = (low + high) / 2;
      if (goes_before(partner[middle], own)) low = middle + 1;
      else high = middle;
    }
    to[row * n + base + (i - run * width) + low] = own;
  }
}

__global__ void __launch_bounds__(kThreads) write_sorted(SortArgs args, const Entry* entries) {
  for (std::int64_t e = grid_thread(); e < args.rows * args.k; e += grid_threads()) {
    const std::int64_t row = e / args.k, i = e - row * args.k;
    write(args, row, i, entries[row * args.n + i].place);
  }
}

/// Sorts rows that are longer than a tile. The scratch has two entries for each element.
void sort_long_rows(const SortArgs& args, const Scratch& scratch, Stream& stream) {
  const std::int64_t in_row = (args.n - 1) / kTileEntries + 1, segments = args.rows * in_row,
                     all = args.rows * args.n;
  Entry *from = static_cast<Entry*>(scratch.data()), *to = from + all;
  run("sort", sort_tiles, blocks_for(segments, 1), kThreads, stream, args, from, segments, in_row,
      kTileEntries);
  for (std::int64_t runs = kTileEntries; runs < args.n; runs *= 2) {
    run("sort", merge_runs, blocks_for(all, kThreads), kThreads, stream, from, to, all, args.n,
        runs);
    Entry* const merged = to;
    to = from;
    from = merged;
  }
  run("sort", write_sorted, blocks_for(args.rows * args.k, kThreads), kThreads, stream, args, from);
}

void sort_in_chunks(const SortArgs& args, std::int64_t entries, Stream& stream) {
  if (args.rows <= 0 || args.k <= 0) return;
  if (args.n <= kTileEntries) {
    int width = 1;
    while (width < args.n) width *= 2;
    return run("sort", sort_tiles, blocks_for(args.rows, kTileEntries / width), kThreads, stream,
               args, static_cast<Entry*>(nullptr), args.rows, std::int64_t{1}, width);
  }
  const std::int64_t fit = entries / args.n, rows = fit < 1 ? 1 : fit < args.rows ? fit : args.rows;
  const Scratch scratch(2 * static_cast<std::size_t>(rows * args.n) * sizeof(Entry), stream);
  const auto bytes = static_cast<std::int64_t>(size_of(args.dtype));
  for (std::int64_t first = 0; first < args.rows; first += rows) {
    SortArgs chunk = args;
    chunk.x = static_cast<const char*>(args.x) + first * args.n * bytes;
    chunk.values = static_cast<char*>(args.values) + first * args.k * bytes;
    chunk.index = args.index + first * args.k;
    chunk.rows = rows < args.rows - first ? rows : args.rows - first;
    sort_long_rows(chunk, scratch, stream);
  }
}

void sort(const SortArgs& args, Stream& stream) {
  // 256 MiB of scratch, and still many times the threads of a GPU
  constexpr std::int64_t entries = std::int64_t{1} << 23;
  sort_in_chunks(args, entries, stream);
}

}  // namespace braid::cuda
