#include <braid/core/kernel_args/reduce.hpp>

#include "cuda/device/reduce.cuh"
#include "cuda/reduce_kinds.hpp"

namespace braid::cuda {

/// Integers are summed in unsigned types, which wrap around.
struct WriteInteger {
  std::int64_t* out;
  DeviceLoop<1> keep;
  BRAID_DEVICE void operator()(std::int64_t e, unsigned long long sum) const {
    out[offsets_of(keep, e).at[0]] = static_cast<std::int64_t>(sum);
  }
};

void reduce_sum(const ReduceArgs& args, Stream& stream) {
  const bool columns = by_columns(args);
  const auto out = make_loop<1>(args.keep);
  const bool floating = with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    using A = typename E::A;
    reduce_all("sum", SumReducer<A>{}, LoadTensor<E, A>(args),
               WriteSum<E>{static_cast<T*>(args.out), args.scale, out}, args.keep.n, args.over.n,
               columns, stream);
  });
  if (floating) return;
  using A = unsigned long long;
  reduce_all("sum", SumReducer<A>{}, LoadIntegers<A>(args),
             WriteInteger{static_cast<std::int64_t*>(args.out), out}, args.keep.n, args.over.n,
             columns, stream);
}

}  // namespace braid::cuda
