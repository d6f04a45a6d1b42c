#pragma once
#include <braid/core/internal/kernel_args/conv.hpp>
#include <braid/core/precision.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

/// Convolutions of float16 and bfloat16 on tensor cores, without a column matrix in memory: sums in
/// float32, rounded once (dW once for each launch: 2^31 pixels). Throws ArgumentError if positions
/// in an image do not fit in 31 bits.
void conv_mma(const ConvArgs& args, Stream& stream);
void conv_mma(const ConvDataArgs& args, Stream& stream);
void conv_mma(const ConvWeightArgs& args, Stream& stream);

/// The same of float32, with another precision than exact.
void conv_tf32(const ConvArgs& args, Float32Precision precision, Stream& stream);
void conv_tf32(const ConvDataArgs& args, Float32Precision precision, Stream& stream);
void conv_tf32(const ConvWeightArgs& args, Float32Precision precision, Stream& stream);

}  // namespace braid::cuda
