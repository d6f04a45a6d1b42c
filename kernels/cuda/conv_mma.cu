#include "cuda/conv_mma.hpp"

#include "cuda/device/conv_mma.cuh"

// Convolutions of float16 and bfloat16 on tensor cores.
namespace braid::cuda {

namespace {

using Tiles = ConvTiles<Mma128, Mma64, Mma64Any, GemmTileKind::mma128>;

template <class Args> void by_dtype(const Args& args, Stream& stream) {
  if (args.dtype == DType::float16) convolve<F16, Tiles>(args, stream);
  else convolve<BF16, Tiles>(args, stream);
}

}  // namespace

void conv_mma(const ConvArgs& args, Stream& stream) { by_dtype(args, stream); }
void conv_mma(const ConvDataArgs& args, Stream& stream) { by_dtype(args, stream); }
void conv_mma(const ConvWeightArgs& args, Stream& stream) { by_dtype(args, stream); }

}  // namespace braid::cuda
