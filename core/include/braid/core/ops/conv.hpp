#pragma once
#include <concepts>

#include <braid/core/tensor.hpp>

// Convolutions of images and sequences, with PyTorch's meaning of every option. A result lies in
// memory channels last ([n, height, width, channels], with the strides to match), whatever the
// layout of x: that is the order in which the arithmetic is fast, and which elementwise ops and
// pooling keep. `contiguous()` gives the other order; `view` of a result may need it, `reshape` and
// `flatten` do not. (PyTorch follows the layout of x.)
namespace braid {

/// A height and a width; one number is both.
struct Size2 {
  std::int64_t height, width;
  template <std::integral I>
  constexpr Size2(I both)
      : height(static_cast<std::int64_t>(both)), width(static_cast<std::int64_t>(both)) {}
  constexpr Size2(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  bool operator==(const Size2&) const = default;
};

/// Zeros on each side: numbers, or "valid" (none), or "same" (as many as keep the size at stride 1;
/// an odd one goes to the end).
struct ConvPadding {
  Size2 size = 0;
  bool same = false;
  template <std::integral I> constexpr ConvPadding(I both) : size(both) {}
  constexpr ConvPadding(std::int64_t h, std::int64_t w) : size(h, w) {}
  ConvPadding(const char* word);  ///< throws ArgumentError for another word, and null
};

struct Conv1dOptions {
  std::int64_t stride = 1;
  ConvPadding padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};

struct Conv2dOptions {
  Size2 stride = 1;
  ConvPadding padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
};

struct ConvTranspose1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t groups = 1;
  std::int64_t dilation = 1;
};

struct ConvTranspose2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  std::int64_t groups = 1;
  Size2 dilation = 1;
};

/// y[n, o, h, w] = bias[o] + Σ_{c, i, j} weight[o, c, i, j] x[n, c, h·stride - padding +
/// i·dilation, …]: cross-correlation, as in all deep learning. The o-th of `groups` equal parts of
/// the outputs sees that part of the inputs alone.
///
/// Shapes    x [n, in, h, w] or [in, h, w]; weight [out, in / groups, kh, kw]; bias [out] or
///           undefined → y [n, out, oh, ow] or [out, oh, ow], oh = ⌊(h + 2·padding - dilation·(kh -
///           1) - 1) / stride⌋ + 1; no size but n may be 0
/// Types     one floating dtype; float16 and bfloat16 are computed in float32 and rounded once
/// Gradient  to x, weight and bias; of any order (its three kernels are each other's derivatives)
/// Throws    ShapeError, DTypeError, DeviceError; ArgumentError for a stride, dilation or groups
///           below 1, a negative padding, "same" with a stride
/// Source    Chellapilla, Puri, Simard 2006, "High performance convolutional neural networks for
///           document processing" (as a matrix product)
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv2dOptions& options = {});
/// The same along one dim: x [n, in, l] or [in, l], weight [out, in / groups, k] → [n, out, ol] or
/// [out, ol].
[[nodiscard]] Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv1dOptions& options = {});

/// The gradient of conv2d with respect to its input, as a layer of its own ("transposed
/// convolution"): x takes the place of dy.
///
/// Shapes    x [n, in, h, w] or [in, h, w]; weight [in, out / groups, kh, kw]; bias [out] or
///           undefined → y [n, out, oh, ow] or [out, oh, ow], oh = (h - 1)·stride - 2·padding +
///           dilation·(kh - 1) + output_padding + 1
/// Types, gradient, errors as conv2d; output_padding must be smaller than stride or dilation
/// (ArgumentError)
/// Source    Zeiler, Krishnan, Taylor, Fergus 2010, "Deconvolutional networks"
[[nodiscard]] Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                                      const Tensor& bias = {},
                                      const ConvTranspose2dOptions& options = {});
/// The same along one dim: x [n, in, l] or [in, l], weight [in, out / groups, k].
[[nodiscard]] Tensor conv_transpose1d(const Tensor& x, const Tensor& weight,
                                      const Tensor& bias = {},
                                      const ConvTranspose1dOptions& options = {});

}  // namespace braid
