#include "cuda/gemm_float32.cuh"

namespace braid::cuda {

void gemm_float32_skinny(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                         Stream& stream) {
  if (tile == GemmTileKind::columns128x16) launch_tiles<F32, Columns128x16>(p, ta, tb, stream);
  else launch_tiles<F32, Rows16x128>(p, ta, tb, stream);
}

}  // namespace braid::cuda
