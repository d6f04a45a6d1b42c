#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cuda/gemm_float32.cuh"

#include "cuda/device/gemm_small.cuh"
#include "cuda/gemm_kinds.hpp"

namespace braid::cuda {

void gemm_float32(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  launch_gemm<F32>(args, plan, stream, [&](const GemmParams<F32>& p) {
    switch (plan.tile) {
      case GemmTileKind::square128:
      case GemmTileKind::tall128x64:
        return gemm_float32_large(plan.tile, p, args.ta, args.tb, stream);
      case GemmTileKind::columns128x16:
      case GemmTileKind::rows16x128:
        return gemm_float32_skinny(plan.tile, p, args.ta, args.tb, stream);
      default: return gemm_float32_square(plan.tile, p, args.ta, args.tb, stream);
    }
  });
}
void linear_backward_float32(const GemmPairArgs& args, Stream& stream) {
  launch_linear_backward<F32>(args, stream);
}

}  // namespace braid::cuda
