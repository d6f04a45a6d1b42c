#include <braid/core/kernel_args/elementwise.hpp>
#include <braid/core/kernel_args/reduce.hpp>

#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/reduce_kinds.hpp"

namespace braid::cuda {

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
