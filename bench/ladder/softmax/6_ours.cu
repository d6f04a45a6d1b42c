#include <braid/core/kernel_table.hpp>

#include "cuda/kernels.hpp"
#include "ladder/problems.hpp"

// Step 6: the engine's own kernel, kernels/cuda/softmax.cu: step 3, and a block for a row of more than 1024 elements.
// Buys   One body for four floating dtypes, softmax and its logarithm, rows of any length and at any address.
// Costs  It reads a row three times, one element an access, and trusts the caches: by the counts it is a step back from step 5.
namespace braid::ladder {

void softmax_ours(const Softmax& s, Stream& stream) {
  SoftmaxArgs args{};
  args.dtype = DType::float32;
  args.x = s.x, args.y = s.y, args.rows = s.rows, args.n = s.n;
  cuda::softmax(args, stream);
}

}  // namespace braid::ladder
