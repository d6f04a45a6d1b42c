#include <braid/core/internal/kernel_args/index.hpp>

#include "cuda/device/add.cuh"
#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/report.cuh"
#include "cuda/errors.hpp"
#include "cuda/index_runs.hpp"
#include "cuda/kernels.hpp"

// Rows of a table by index: embedding lookup and its gradient.
// Indices   outside [low, table_rows) are reported (runtime/device_errors.hpp). The lookup gives
//           rows of NaN for them, or 0 in other dtypes; the gradient skips their rows.
namespace braid::cuda {

BRAID_DEVICE bool in_range(std::int64_t index, std::int64_t low, std::int64_t table_rows) {
  return index >= low && index < table_rows;
}
BRAID_DEVICE std::int64_t wrapped(std::int64_t index, std::int64_t table_rows) {
  return index < 0 ? index + table_rows : index;
}

/// Rows consist of `width` units of U, the widest type whose size divides all rows. `missing` is
/// stored for rows that do not exist.
template <class U>
__global__ void __launch_bounds__(kThreads)
    gather_units(const U* table, const std::int64_t* index, U* out, std::int64_t low,
                 std::int64_t table_rows, std::int64_t rows, Divider width, bool narrow, U missing,
                 FaultSite site) {
  const std::int64_t n = rows * width.divisor;
  for (std::int64_t i = grid_thread(); i < n; i += grid_threads()) {
    const std::int64_t row = width.divide(i, narrow), column = i - row * width.divisor,
                       from = index[row];
    const bool good = in_range(from, low, table_rows);
    if (!good && column == 0) report(site, DeviceFault::index, low, table_rows, from, row);
    out[i] = good ? table[wrapped(from, table_rows) * width.divisor + column] : missing;
  }
}

/// For rows without elements: only checks the indices.
__global__ void __launch_bounds__(kThreads)
    check_indices(const std::int64_t* index, std::int64_t low, std::int64_t table_rows,
                  std::int64_t rows, FaultSite site) {
  for (std::int64_t i = grid_thread(); i < rows; i += grid_threads())
    if (!in_range(index[i], low, table_rows))
      report(site, DeviceFault::index, low, table_rows, index[i], i);
}

template <class U>
void gather_as(const GatherRowsArgs& args, std::int64_t row_bytes, const FaultSite& site,
               Stream& stream) {
  const std::int64_t width = row_bytes / static_cast<std::int64_t>(sizeof(U)),
                     n = args.rows * width;
  U missing;
  auto* bytes = reinterpret_cast<unsigned char*>(&missing);
  // all ones are a NaN in every format
  for (std::size_t k = 0; k < sizeof(U); ++k) bytes[k] = is_floating(args.dtype) ? 0xff : 0;
  run("gather_rows", gather_units<U>, blocks_for(n, kThreads), kThreads, stream,
      static_cast<const U*>(args.table), args.index, static_cast<U*>(args.out),
      args.wrap ? -args.table_rows : 0, args.table_rows, args.rows, Divider(width),
      n < std::int64_t{1} << 31, missing, site);
}

void gather_rows(const GatherRowsArgs& args, Stream& stream) {
  if (args.rows <= 0) return;
  const FaultSite site = fault_site(device_error_record(stream), args.op, "indices");
  if (args.width <= 0)
    return run("gather_rows", check_indices, blocks_for(args.rows, kThreads), kThreads, stream,
               args.index, args.wrap ? -args.table_rows : 0, args.table_rows, args.rows, site);
  const std::int64_t row_bytes = args.width * static_cast<std::int64_t>(size_of(args.dtype));
  const auto ends = reinterpret_cast<std::uintptr_t>(args.table) |
                    reinterpret_cast<std::uintptr_t>(args.out) |
                    static_cast<std::uintptr_t>(row_bytes);
  if (ends % 16 == 0) return gather_as<uint4>(args, row_bytes, site, stream);
  if (ends % 8 == 0) return gather_as<std::uint64_t>(args, row_bytes, site, stream);
  if (ends % 4 == 0) return gather_as<std::uint32_t>(args, row_bytes, site, stream);
  if (ends % 2 == 0) return gather_as<std::uint16_t>(args, row_bytes, site, stream);
  gather_as<std::uint8_t>(args, row_bytes, site, stream);
}

/// A block owns the table rows whose low bits are its index, so each row gets its additions in the
/// order of the indices. It reads all indices, kThreads at a time, and lists its own in order, each
/// with the next one of the same row. Each thread then adds its own columns, and rounds the sum of
/// a row once.
template <class E>
__global__ void __launch_bounds__(kThreads)
    scatter_add(typename E::T* table, const std::int64_t* index, const typename E::T* dy,
                std::int64_t table_rows, std::int64_t rows, std::int64_t width, FaultSite site) {
  SIMT_SHARED(int, count, [kWarps]);
  SIMT_SHARED(std::int64_t, source, [kThreads]);
  SIMT_SHARED(std::int64_t, target, [kThreads]);
  SIMT_SHARED(short, next, [kThreads]);
  SIMT_SHARED(bool, first, [kThreads]);
  const unsigned earlier_lanes = (1u << lane_of_thread()) - 1u;
  for (std::int64_t tile = 0; tile < rows; tile += kThreads) {
    const int own = static_cast<int>(threadIdx.x);
    const std::int64_t i = tile + own;
    std::int64_t row = -1;
    if (i < rows) {
      const std::int64_t wanted = index[i];
      if (in_range(wanted, -table_rows, table_rows)) row = wrapped(wanted, table_rows);
      else if (blockIdx.x == 0 && blockIdx.y == 0)
        report(site, DeviceFault::index, -table_rows, table_rows, wanted, i);
    }
    const bool mine = row >= 0 && (row & static_cast<std::int64_t>(gridDim.x - 1)) ==
                                      static_cast<std::int64_t>(blockIdx.x);
    const unsigned lanes = __ballot_sync(kFullWarp, mine ? 1 : 0);
    if (lane_of_thread() == 0) count[warp_of_thread()] = __popc(lanes);
    __syncthreads();
    int place = __popc(lanes & earlier_lanes), all = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp_of_thread()) place += count[w];
      all += count[w];
    }
    // The entries of the previous tile have been used: since then, every thread has reached the
    // barrier above.
    if (mine) source[place] = i, target[place] = row;
    __syncthreads();
    if (own < all) {
      int after = own + 1, before = own - 1;
      while (after < all && target[after] != target[own]) ++after;
      while (before >= 0 && target[before] != target[own]) --before;
      next[own] = static_cast<short>(after);
      first[own] = before < 0;
    }
    __syncthreads();  // the list is complete
    for (int k = 0; k < all; ++k) {
      if (!first[k]) continue;
      for (std::int64_t j = static_cast<std::int64_t>(blockIdx.y) * kThreads + own; j < width;
           j += static_cast<std::int64_t>(gridDim.y) * kThreads) {
        typename E::T& to = table[target[k] * width + j];
        typename E::A sum = E::load(to);
        for (int e = k; e < all; e = next[e])
          sum = added<E>(sum, E::load(dy[source[e] * width + j]));
        to = E::store(sum);
      }
    }
  }
}

void scatter_add_rows(const ScatterAddRowsArgs& args, Stream& stream) {
  if (args.rows <= 0) return;
  const FaultSite site = fault_site(device_error_record(stream), "scatter_add_rows", "indices");
  if (args.width <= 0)
    return run("scatter_add_rows", check_indices, blocks_for(args.rows, kThreads), kThreads, stream,
               args.index, -args.table_rows, args.table_rows, args.rows, site);
  // With few rows the launches of a sort would take longer.
  if (args.rows > kThreads && is_floating(args.dtype)) return scatter_add_runs(args, site, stream);
  unsigned owners = 1;  // a power of two
  while (owners < 256 && owners < args.table_rows && owners < args.rows) owners *= 2;
  const std::int64_t columns = (args.width + kThreads - 1) / kThreads;
  const dim3 grid(owners, static_cast<unsigned>(columns < 64 ? columns : 64));
  with_element(args.dtype, [&]<class E>() {
    using T = typename E::T;
    run("scatter_add_rows", scatter_add<E>, grid, kThreads, stream, static_cast<T*>(args.table),
        args.index, static_cast<const T*>(args.dy), args.table_rows, args.rows, args.width, site);
  });
}

}  // namespace braid::cuda
