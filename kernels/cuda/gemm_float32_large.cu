#include "cuda/gemm_float32.cuh"

namespace braid::cuda {

void gemm_float32_large(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                        Stream& stream) {
  if (tile == GemmTileKind::square128) launch_tiles<F32, Square128>(p, ta, tb, stream);
  else launch_tiles<F32, Tall128x64>(p, ta, tb, stream);
}

}  // namespace braid::cuda
