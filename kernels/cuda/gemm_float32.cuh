#pragma once
#include "cuda/device/gemm.cuh"
#include "cuda/gemm_plan.hpp"

// The tiles of float32, two per file, so that they compile in parallel.
namespace braid::cuda {

void gemm_float32_large(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                        Stream& stream);
void gemm_float32_square(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                         Stream& stream);
void gemm_float32_skinny(GemmTileKind tile, const GemmParams<F32>& p, bool ta, bool tb,
                         Stream& stream);

}  // namespace braid::cuda
