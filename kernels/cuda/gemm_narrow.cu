#include "cuda/device/gemm.cuh"
#include "cuda/gemm_kinds.hpp"

// float16 and bfloat16: widened on their way to shared memory, summed in float32, rounded once.
namespace braid::cuda {

void gemm_float16(const GemmArgs& args, Stream& stream) { launch_gemm<F16, PlainTile>(args, stream); }
void gemm_bfloat16(const GemmArgs& args, Stream& stream) { launch_gemm<BF16, PlainTile>(args, stream); }

}  // namespace braid::cuda
