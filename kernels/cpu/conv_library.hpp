#pragma once
#include <braid/core/kernel_args/conv.hpp>

// The library's convolutions (oneDNN), float32; conv_onednn.cpp is the one file that knows them.
namespace braid { class Stream; }
namespace braid::cpu {

/// True if the library did it; false, with nothing done, in a build without it, where it is
/// switched off (use_library_gemm), where it has no fast code for the call, and once the process is
/// ending. The batch is cut in fixed tiles, each on one thread; their weight gradients are added in
/// a fixed tree. Throws InternalError if the library refuses.
[[nodiscard]] bool library_conv(const ConvArgs& args, Stream& stream);
[[nodiscard]] bool library_conv(const ConvDataArgs& args, Stream& stream);
[[nodiscard]] bool library_conv(const ConvWeightArgs& args, Stream& stream);

}  // namespace braid::cpu
