#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/internal/kernel_args/reduce.hpp>

#include "cuda/device/reduce.cuh"
#include "cuda/device/reduce_load.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/reduce_kinds.hpp"

// Reductions, and the sum. max and min are in reduce_extreme.cu, argmax and argmin in
// reduce_index.cu.
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

void reduce(const ReduceArgs& args, Stream& stream) {
  if (args.keep.n <= 0) return;
  if (args.over.n <= 0) {
    if (args.op != ReduceOp::sum) fail_empty_reduction("reduce");
    // The sum of no elements is 0 * scale, so that the mean of no elements is NaN. The loop's
    // operand 0 is the output, as fill requires.
    const DType out = is_floating(args.dtype) ? args.dtype : DType::int64;
    return fill(FillArgs{.dtype = out,
                         .out = args.out,
                         .value = 0.0 * args.scale,
                         .integer = 0,
                         .loop = args.keep},
                stream);
  }
  switch (args.op) {
    case ReduceOp::sum: return reduce_sum(args, stream);
    case ReduceOp::max:
    case ReduceOp::min: return reduce_extreme(args, stream);
    case ReduceOp::argmax:
    case ReduceOp::argmin: return reduce_index(args, stream);
  }
}

}  // namespace braid::cuda
