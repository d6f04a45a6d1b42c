#include "cuda/device/gemm.cuh"
#include "cuda/gemm_kinds.hpp"

namespace braid::cuda {

void gemm_float32(const GemmArgs& args, Stream& stream) {
  // Wide tiles read each operand half as often; they pay where there are enough of them to fill a GPU.
  const std::int64_t wide_tiles = (args.m + 127) / 128 * ((args.n + 127) / 128) * args.batch;
  if (args.m >= 128 && args.n >= 128 && wide_tiles >= 128) return launch_gemm<F32, WideTile>(args, stream);
  launch_gemm<F32, PlainTile>(args, stream);
}

}  // namespace braid::cuda
