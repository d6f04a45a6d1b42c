#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cuda/device/gemm_small.cuh"
#include "cuda/gemm_kinds.hpp"

namespace braid::cuda {

void gemm_float64(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  launch_square<F64>(args, plan, stream);
}
void linear_backward_float64(const GemmPairArgs& args, Stream& stream) {
  launch_linear_backward<F64>(args, stream);
}

}  // namespace braid::cuda
