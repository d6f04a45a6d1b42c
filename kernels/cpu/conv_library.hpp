#pragma once
#include <braid/core/kernel_args/conv.hpp>

// Convolutions by oneDNN, float32. Only conv_onednn.cpp depends on the library.
namespace braid { class Stream; }
namespace braid::cpu {

/// Returns true if the library computed the convolution. Returns false, with nothing done, in a
/// build without the library, where it is switched off (use_library_gemm), where it has no fast
/// code for the call, and once the process is ending. The batch is split into fixed tiles, each
/// computed by one thread. The tiles' weight gradients are added in a fixed tree. Throws
/// InternalError if the library fails.
[[nodiscard]] bool library_conv(const ConvArgs& args, Stream& stream);
[[nodiscard]] bool library_conv(const ConvDataArgs& args, Stream& stream);
[[nodiscard]] bool library_conv(const ConvWeightArgs& args, Stream& stream);

}  // namespace braid::cpu
