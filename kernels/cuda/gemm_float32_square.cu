#include "cuda/gemm_float32.cuh"

namespace braid::cuda {

void gemm_float32_square(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                         Stream& stream) {
  if (tile == GemmTileKind::square32) launch_tiles<F32, Square32>(p, ta, tb, stream);
  else launch_tiles<F32, Square64>(p, ta, tb, stream);
}

}  // namespace braid::cuda
