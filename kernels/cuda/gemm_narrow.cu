#include <braid/core/kernel_args/gemm.hpp>

#include "cuda/device/gemm_small.cuh"
#include "cuda/gemm_kinds.hpp"

// float16 and bfloat16 are widened on their way to shared memory, summed in float32, and rounded
// once.
namespace braid::cuda {

void gemm_float16(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  launch_square<F16>(args, plan, stream);
}
void gemm_bfloat16(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  launch_square<BF16>(args, plan, stream);
}
void linear_backward_float16(const GemmPairArgs& args, Stream& stream) {
  launch_linear_backward<F16>(args, stream);
}
void linear_backward_bfloat16(const GemmPairArgs& args, Stream& stream) {
  launch_linear_backward<BF16>(args, stream);
}

}  // namespace braid::cuda
