#include <braid/core/kernel_args/gemm.hpp>

#include "cpu/simd/gemm_tile.hpp"

// float16 and bfloat16 are widened while they are packed, and summed in float32.
namespace braid::cpu::BRAID_ISA {

void gemm_tile_float16(const GemmArgs& args, GemmWay way, const GemmTile& tile) {
  floating_tile<F16>(args, way, tile);
}
void gemm_tile_bfloat16(const GemmArgs& args, GemmWay way, const GemmTile& tile) {
  floating_tile<BF16>(args, way, tile);
}

}  // namespace braid::cpu::BRAID_ISA
