#include "cuda/device/gemm.cuh"
#include "cuda/gemm_kinds.hpp"

namespace braid::cuda {

void gemm_float64(const GemmArgs& args, Stream& stream) { launch_gemm<F64, PlainTile>(args, stream); }

}  // namespace braid::cuda
