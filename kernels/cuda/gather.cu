#include <braid/core/internal/kernel_args/index.hpp>

#include "cuda/device/add.cuh"
#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/report.cuh"
#include "cuda/errors.hpp"
#include "cuda/gather_sorted.hpp"
#include "cuda/kernels.hpp"

// Gather and scatter of single elements by index along one dim. Whole rows are in index.cu.
// Indices   outside [0, size) are reported (runtime/device_errors.hpp). Such an index reads NaN,
//           or 0 in other dtypes, and writes nothing.
namespace braid::cuda {

template <class U>
__global__ void __launch_bounds__(kThreads)
    gather_elements(U* out, const std::int64_t* index, const U* x, DeviceLoop<3> loop,
                    std::int64_t size, std::int64_t step, U missing, FaultSite site) {
  for (std::int64_t i = grid_thread(); i < loop.n; i += grid_threads()) {
    const Offsets<3> o = offsets_of(loop, i);
    const std::int64_t from = index[o.at[1]];
    const bool good = from >= 0 && from < size;
    if (!good) report(site, DeviceFault::index, 0, size, from, i);
    out[o.at[0]] = good ? x[o.at[2] + from * step] : missing;
  }
}

void gather(const GatherArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  const FaultSite site = fault_site(device_error_record(stream), args.op, "indices");
  with_bits(size_of(args.dtype), [&]<class U>() {
    // all ones are a NaN in every format
    const U missing = is_floating(args.dtype) ? static_cast<U>(~U(0)) : U(0);
    run("gather", gather_elements<U>, blocks_for(args.loop.n, kThreads), kThreads, stream,
        static_cast<U*>(args.out), args.index, static_cast<const U*>(args.x),
        make_loop<3>(args.loop), args.size, args.step, missing, site);
  });
}

/// A line of m elements, which are scattered in order.
struct ScatterLine {
  std::int64_t m, index_step, src_step, size, step;
};

/// Each line has `owners` threads (a power of two), which are consecutive in the grid. All of them
/// read all indices of the line in order, and each writes the elements whose low index bits are its
/// number. So every element gets its values in the order of the indices.
template <class E>
__global__ void __launch_bounds__(kThreads)
    scatter_elements(typename E::T* out, const std::int64_t* index, const typename E::T* src,
                     DeviceLoop<3> lines, ScatterLine line, int owner_bits, bool add,
                     FaultSite site) {
  const std::int64_t mask = (std::int64_t{1} << owner_bits) - 1;
  for (std::int64_t t = grid_thread(); t >> owner_bits < lines.n; t += grid_threads()) {
    const std::int64_t l = t >> owner_bits, own = t & mask;
    const Offsets<3> o = offsets_of(lines, l);
    std::int64_t wrong = -1;  // reported after the loop, to save registers in it
    for (std::int64_t j = 0; j < line.m; ++j) {
      const std::int64_t at = index[o.at[1] + j * line.index_step];
      if (at < 0 || at >= line.size) {
        if (own == 0 && wrong < 0) wrong = j;
        continue;
      }
      if ((at & mask) != own) continue;
      typename E::T& to = out[o.at[0] + at * line.step];
      const typename E::T from = src[o.at[2] + j * line.src_step];
      if (!add) {
        to = from;
        continue;
      }
      to = E::store(added<E>(E::load(to), E::load(from)));
    }
    if (wrong >= 0)
      report(site, DeviceFault::index, 0, line.size, index[o.at[1] + wrong * line.index_step],
             l * line.m + wrong);
  }
}

/// Whether sorting the entries of a scatter takes less time than threads that read all m indices of
/// a line, of which each of the owners writes its share. The times, in ns, are estimates: of
/// reading an index, of writing an element, of the launches, and of an entry in the sort.
bool sorts(std::int64_t m, int owners, std::int64_t entries) {
  if (entries > std::int64_t{1} << 26) return false;  // an entry takes 56 bytes
  constexpr double index = 5, element = 150, launches = 40000, entry = 2;
  return static_cast<double>(m) * (index + element / owners) >
         launches + entry * static_cast<double>(entries);
}

void scatter(const ScatterArgs& args, Stream& stream) {
  if (args.lines.n <= 0 || args.m <= 0) return;
  const FaultSite site = fault_site(device_error_record(stream), args.op, "indices");
  // One thread per line if there are many lines; several if there are few long ones.
  int owners = 1, bits = 0;
  while (owners < 1024 && owners < args.size && owners < args.m && args.lines.n * owners < 16384)
    owners *= 2, ++bits;
  const SortedScatter sorted(args);
  if (sorts(args.m, owners, sorted.entries())) return sorted.queue(site, stream);
  with_element(args.dtype, [&]<class E>() {
    using T = typename E::T;
    run("scatter", scatter_elements<E>, blocks_for(args.lines.n * owners, kThreads), kThreads,
        stream, static_cast<T*>(args.out), args.index, static_cast<const T*>(args.src),
        make_loop<3>(args.lines),
        ScatterLine{args.m, args.index_step, args.src_step, args.size, args.step}, bits, args.add,
        site);
  });
}

}  // namespace braid::cuda
