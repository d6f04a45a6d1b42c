#pragma once
#include <concepts>
#include <optional>

#include <braid/core/tensor.hpp>

// Convolutions of images and sequences, with PyTorch's meaning of every option. The memory layout
// of a result is channels last ([n, height, width, channels], with matching strides), whatever the
// layout of x: the arithmetic is fast in this layout, and elementwise ops and pooling keep it.
// `contiguous()` gives the row-major layout; `view` of a result may need it, `reshape` and
// `flatten` do not. (PyTorch keeps the layout of x.)
namespace braid {

/// A height and a width; one number sets both.
struct Size2 {
  std::int64_t height, width;
  template <std::integral I>
  constexpr Size2(I both)
      : height(static_cast<std::int64_t>(both)), width(static_cast<std::int64_t>(both)) {}
  constexpr Size2(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  bool operator==(const Size2&) const = default;
};

/// Zeros on each side: a number of them, or "valid" (none), or "same" (as many as keep the size at
/// stride 1; if their number is odd, the end gets one more).
struct ConvPadding {
  Size2 size = 0;
  bool same = false;
  template <std::integral I> constexpr ConvPadding(I both) : size(both) {}
  constexpr ConvPadding(std::int64_t h, std::int64_t w) : size(h, w) {}
  ConvPadding(const char* word);  ///< throws ArgumentError for any other text, and for null
};

// The options of the functions, and of the layers of the same names in braid/nn/conv.hpp. bias,
// device and dtype are for the layers, which make their parameters; the functions ignore them.
/// The options of conv1d and nn::Conv1d.
struct Conv1dOptions {
  std::int64_t stride = 1;
  ConvPadding padding = 0;  ///< numbers, "same" or "valid"
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};

/// The options of conv2d and nn::Conv2d.
struct Conv2dOptions {
  Size2 stride = 1;
  ConvPadding padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// The options of conv_transpose1d and nn::ConvTranspose1d.
struct ConvTranspose1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  std::int64_t dilation = 1;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// The options of conv_transpose2d and nn::ConvTranspose2d. output_padding is added to the size at
/// the end only.
struct ConvTranspose2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Size2 dilation = 1;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// y[n, o, h, w] = bias[o] +
/// Σ_{c, i, j} weight[o, c, i, j] x[n, c, h·stride - padding + i·dilation, …]: a cross-correlation,
/// as in all deep learning libraries. With groups, the channels of x and y are cut into `groups`
/// equal parts, and each part of y depends only on the same part of x.
///
/// Shapes    x [n, in, h, w] or [in, h, w]; weight [out, in / groups, kh, kw]; bias [out] or
///           undefined → y [n, out, oh, ow] or [out, oh, ow],
///           oh = ⌊(h + 2·padding - dilation·(kh - 1) - 1) / stride⌋ + 1; no size other than n may
///           be 0
/// Types     one floating dtype; float16 and bfloat16 are computed in float32 and rounded once
/// Gradient  to x, weight and bias, of any order (each of its three kernels is a derivative of the
///           others)
/// Throws    ShapeError, DTypeError, DeviceError; ArgumentError for a stride, dilation or groups
///           below 1, for a negative padding, and for "same" with a stride other than 1
/// Source    Chellapilla, Puri, Simard 2006, "High performance convolutional neural networks for
///           document processing" (as a matrix product)
///
///     const Tensor image = randn({8, 3, 32, 32}), kernel = randn({16, 3, 3, 3});
///     conv2d(image, kernel, {}, {.stride = 2, .padding = 1});  // [8, 16, 16, 16]
///     conv2d(image, kernel, {}, {.padding = "same"});          // [8, 16, 32, 32]
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv2dOptions& options = {});
/// The same along one dim: x [n, in, l] or [in, l], weight [out, in / groups, k] → [n, out, ol] or
/// [out, ol].
[[nodiscard]] Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv1dOptions& options = {});

/// LibTorch's form, with the options in order.
[[nodiscard]] inline Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   Size2 stride, const ConvPadding& padding = 0, Size2 dilation = 1,
                                   std::int64_t groups = 1) {
  return conv2d(
      x, weight, bias,
      Conv2dOptions{.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
}
[[nodiscard]] inline Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   std::int64_t stride, const ConvPadding& padding = 0,
                                   std::int64_t dilation = 1, std::int64_t groups = 1) {
  return conv1d(
      x, weight, bias,
      Conv1dOptions{.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
}

/// The gradient of conv2d with respect to its input, used as a layer ("transposed convolution"): x
/// takes the place of dy.
///
/// Shapes    x [n, in, h, w] or [in, h, w]; weight [in, out / groups, kh, kw]; bias [out] or
///           undefined → y [n, out, oh, ow] or [out, oh, ow],
///           oh = (h - 1)·stride - 2·padding + dilation·(kh - 1) + output_padding + 1
/// Others    types, gradient and errors as conv2d; also ArgumentError unless output_padding is
///           smaller than stride or dilation
/// Source    Zeiler, Krishnan, Taylor, Fergus 2010, "Deconvolutional networks"
[[nodiscard]] Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                                      const Tensor& bias = {},
                                      const ConvTranspose2dOptions& options = {});
/// The same along one dim: x [n, in, l] or [in, l], weight [in, out / groups, k].
[[nodiscard]] Tensor conv_transpose1d(const Tensor& x, const Tensor& weight,
                                      const Tensor& bias = {},
                                      const ConvTranspose1dOptions& options = {});

}  // namespace braid
