#include "cuda/conv_mma.hpp"
#include "cuda/device/conv_mma.cuh"

// Convolutions of float32 on tensor cores.
namespace braid::cuda {

namespace {

using Plain =
    ConvTiles<Tf32Large, Tf32Small, Tf32Any, GemmTileKind::tf32_128, Float32Precision::tf32>;
using Split = ConvTiles<Tf32x3Large, Tf32x3Small, Tf32x3Any, GemmTileKind::tf32x3_128x64,
                        Float32Precision::tf32x3>;

template <class Args>
void by_precision(const Args& args, Float32Precision precision, Stream& stream) {
  if (precision == Float32Precision::tf32) convolve<F32, Plain>(args, stream);
  else convolve<F32, Split>(args, stream);
}

}  // namespace

void conv_tf32(const ConvArgs& args, Float32Precision precision, Stream& stream) {
  by_precision(args, precision, stream);
}
void conv_tf32(const ConvDataArgs& args, Float32Precision precision, Stream& stream) {
  by_precision(args, precision, stream);
}
void conv_tf32(const ConvWeightArgs& args, Float32Precision precision, Stream& stream) {
  by_precision(args, precision, stream);
}

}  // namespace braid::cuda
