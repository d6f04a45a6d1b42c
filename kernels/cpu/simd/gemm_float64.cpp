#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cpu/simd/gemm_tile.hpp"

namespace braid::cpu::BRAID_ISA {

void gemm_tile_float64(const GemmArgs& args, GemmWay way, const GemmTile& tile) {
  floating_tile<F64>(args, way, tile);
}

}  // namespace braid::cpu::BRAID_ISA
