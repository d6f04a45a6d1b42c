#include "cuda/gather_sorted.hpp"

#include <optional>

#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/internal/kernel_args/sort.hpp>

#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/report.cuh"
#include "cuda/index_runs.hpp"
#include "cuda/kernels.hpp"

// A scatter of long lines. The entries of a line are sorted by the place that they write, stably,
// so that those of one place are a run in the order of the indices. Of a run the last entry is
// written, or the sum is added (index_runs.cu).
// accesses of scatter_keys: indices are looked at one by one
// accesses of scatter_last: an entry lies where the sort has found it
namespace braid::cuda {

/// The key of an entry whose index is outside: it is sorted behind all others, and not written.
inline constexpr std::int64_t kNoRow = INT64_MAX;

/// keys[e] = the row of out that entry e writes. The entries are those of one line after another.
__global__ void __launch_bounds__(kThreads)
    scatter_keys(std::int64_t* keys, const std::int64_t* index, DeviceLoop<2> lines, std::int64_t m,
                 std::int64_t index_step, std::int64_t size, std::int64_t step, std::int64_t width,
                 FaultSite site) {
  for (std::int64_t e = grid_thread(); e < lines.n * m; e += grid_threads()) {
    const std::int64_t line = e / m, j = e - line * m;
    const Offsets<2> o = offsets_of(lines, line);
    const std::int64_t at = index[o.at[1] + j * index_step];
    const bool good = at >= 0 && at < size;
    if (!good) report(site, DeviceFault::index, 0, size, at, line * width * m + j);
    keys[e] = good ? (o.at[0] + at * step) / width : kNoRow;
  }
}

/// Writes the last entry of each key.
template <class U>
__global__ void __launch_bounds__(kThreads)
    scatter_last(U* out, const U* src, const std::int64_t* keys, const std::int64_t* places,
                 std::int64_t entries, Divider width, bool narrow) {
  const std::int64_t n = entries * width.divisor;
  for (std::int64_t i = grid_thread(); i < n; i += grid_threads()) {
    const std::int64_t e = width.divide(i, narrow), column = i - e * width.divisor, key = keys[e];
    if (key != kNoRow && (e + 1 == entries || keys[e + 1] != key))
      out[key * width.divisor + column] = src[places[e] * width.divisor + column];
  }
}

SortedScatter::SortedScatter(const ScatterArgs& args) : args_(args), lines_(args.lines) {
  const int inner = lines_.rank - 1;
  if (inner < 0 || lines_.stride[0][inner] != 1 || lines_.stride[1][inner] != 0) return;
  // the rows of out have to begin at multiples of the width
  const std::int64_t width = lines_.size[inner];
  bool whole = args.step % width == 0;
  for (int d = 0; d < inner; ++d) whole = whole && lines_.stride[0][d] % width == 0;
  if (!whole) return;
  width_ = width;
  --lines_.rank;
  lines_.n /= width;
}

/// The copy that puts the rows of src in the order of the entries.
CopyArgs copy_to_rows(const ScatterArgs& args, const Loop& lines, std::int64_t width) {
  CopyArgs copy{args.dtype, args.dtype, nullptr, args.src, {}};
  Loop& loop = copy.loop;
  const auto add = [&](std::int64_t size, std::int64_t stride) {
    loop.size[loop.rank] = size;
    loop.stride[1][loop.rank++] = stride;
  };
  for (int d = 0; d < lines.rank; ++d) add(lines.size[d], lines.stride[2][d]);
  add(args.m, args.src_step);
  if (width > 1) add(width, args.lines.stride[2][args.lines.rank - 1]);
  loop.n = 1;
  for (int d = loop.rank - 1; d >= 0; --d) {
    loop.stride[0][d] = loop.n;
    loop.n *= loop.size[d];
  }
  return copy;
}

void SortedScatter::queue(const FaultSite& site, Stream& stream) const {
  const std::int64_t all = entries();
  const Scratch lists(3 * static_cast<std::size_t>(all) * sizeof(std::int64_t), stream);
  std::int64_t* const keys = static_cast<std::int64_t*>(lists.data());
  std::int64_t *const sorted = keys + all, *const places = sorted + all;
  run("scatter", scatter_keys, blocks_for(all, kThreads), kThreads, stream, keys, args_.index,
      make_loop<2>(lines_), args_.m, args_.index_step, args_.size, args_.step, width_, site);
  sort({DType::int64, keys, sorted, places, 1, all, all, false}, stream);

  CopyArgs order = copy_to_rows(args_, lines_, width_);
  bool in_order = true;
  for (int d = 0; d < order.loop.rank; ++d)
    in_order =
        in_order && (order.loop.size[d] == 1 || order.loop.stride[0][d] == order.loop.stride[1][d]);
  std::optional<Scratch> copied;
  if (!in_order) {
    copied.emplace(static_cast<std::size_t>(order.loop.n) * size_of(args_.dtype), stream);
    order.out = copied->data();
    copy(order, stream);
  }
  const void* const rows = in_order ? args_.src : order.out;
  if (args_.add)
    return add_sorted_rows("scatter", args_.dtype, args_.out, kNoRow, width_,
                           {sorted, places, rows, all}, stream);
  with_bits(size_of(args_.dtype), [&]<class U>() {
    const std::int64_t n = all * width_;
    run("scatter", scatter_last<U>, blocks_for(n, kThreads), kThreads, stream,
        static_cast<U*>(args_.out), static_cast<const U*>(rows), sorted, places, all,
        Divider(width_), n < std::int64_t{1} << 31);
  });
}

}  // namespace braid::cuda
