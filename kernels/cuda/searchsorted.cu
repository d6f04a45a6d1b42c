#include <braid/core/internal/kernel_args/searchsorted.hpp>

#include "cuda/device/element.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/run.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// A binary search for each value, a thread each. 16-bit types are compared in float.
// accesses of search_rows: a search reads single elements, each where the last one sends it
namespace braid::cuda {

template <class E> __global__ void __launch_bounds__(kThreads) search_rows(SearchsortedArgs args) {
  using T = typename E::T;
  for (std::int64_t i = grid_thread(); i < args.rows * args.m; i += grid_threads()) {
    const T* const row = static_cast<const T*>(args.sequence) + i / args.m * args.step;
    const auto v = E::load(static_cast<const T*>(args.values)[i]);
    std::int64_t begin = 0, end = args.n;
    while (begin < end) {
      const std::int64_t middle = begin + (end - begin) / 2;
      const auto x = E::load(row[middle]);
      if (args.right ? x > v : x >= v) end = middle;
      else begin = middle + 1;
    }
    args.index[i] = begin;
  }
}

void searchsorted(const SearchsortedArgs& args, Stream& stream) {
  const std::int64_t all = args.rows * args.m;
  if (all <= 0) return;
  if (args.dtype == DType::bool_) fail_dtype("searchsorted", "numbers", args.dtype);
  with_element(args.dtype, [&]<class E>() {
    if constexpr (E::kDType != DType::bool_)
      run("searchsorted", search_rows<E>, blocks_for(all, kThreads), kThreads, stream, args);
  });
}

}  // namespace braid::cuda
