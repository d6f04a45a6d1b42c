#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What the convolutions are asked for. Images lie in memory as [n, height, width, channels]
// ("channels last"), dense: the products' order, so that results go straight to their place.
// Weights are dense [out, in / groups, kernel height, kernel width]. float32 and float64.
namespace braid {

/// [0] is of the height, [1] of the width. Output o meets input o * stride - pad + k * dilation for
/// each k of the kernel; what lies outside the image is 0. in_size and out_size are given both:
/// out_size may be smaller than all places that the kernel reaches. All sizes are above 0.
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

/// dx: for each input the sum of dy * weight over all that met it; 0 where nothing did.
struct ConvDataArgs {
  DType dtype;
  const void* dy;
  const void* weight;
  void* dx;
  ConvShape shape;
};

/// dw = Σ over images and places of dy * x; db [out] = Σ dy, may be null. In a fixed order.
struct ConvWeightArgs {
  DType dtype;
  const void* x;
  const void* dy;
  void* dw;
  void* db;
  ConvShape shape;
};

}  // namespace braid
