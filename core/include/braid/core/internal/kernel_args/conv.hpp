#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the convolutions. Images are contiguous [n, height, width, channels] in memory
// ("channels last"), the order in which the matrix products write, so that results need no
// rearrangement. Weights are contiguous [out, in / groups, kernel height, kernel width]. float32
// and float64; on CUDA also float16 and bfloat16, summed in float32.
namespace braid {

/// [0] is the height, [1] the width. Output o uses input o * stride - pad + k * dilation for each k
/// of the kernel; elements outside of the image are 0. out_size is given because it may be smaller
/// than the number of positions that the kernel reaches. All sizes are above 0.
struct ConvShape {
  std::int64_t n, in, out, groups;
  std::int64_t in_size[2], out_size[2], kernel[2], stride[2], pad[2], dilation[2];
  bool operator==(const ConvShape&) const = default;
};

/// y [n, out, out_size] = x [n, in, in_size] convolved with weight (+ bias [out], may be null).
struct ConvArgs {
  DType dtype;
  const void* x;
  const void* weight;
  const void* bias;
  void* y;
  ConvShape shape;
};

/// dx: for each input the sum of dy * weight over the outputs that used it, 0 if none did (+ bias
/// [in], which only a transposed convolution has; may be null).
struct ConvDataArgs {
  DType dtype;
  const void* dy;
  const void* weight;
  const void* bias;
  void* dx;
  ConvShape shape;
};

/// dw = Σ over images and positions of dy * x; db [out] = Σ dy, may be null. In a fixed order.
struct ConvWeightArgs {
  DType dtype;
  const void* x;
  const void* dy;
  void* dw;
  void* db;
  ConvShape shape;
};

}  // namespace braid
