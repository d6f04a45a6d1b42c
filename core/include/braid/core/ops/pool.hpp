#pragma once
#include <optional>
#include <utility>

#include <braid/core/ops/conv.hpp>

// Pooling and resizing, with PyTorch's meaning of every option. x is [n, c, h, w] or [c, h, w],
// along one dim [n, c, l] or [c, l]; floating point. float16 and bfloat16 are computed in float32
// and rounded once. A result has the memory layout of x: channels last or row-major. Gradients are
// of any order.
namespace braid {

/// stride is the kernel size by default.
struct MaxPool1dOptions {
  std::optional<std::int64_t> stride = {};
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  bool ceil_mode = false;  ///< keeps a last window that ends outside (see max_pool2d)
};
struct MaxPool2dOptions {
  std::optional<Size2> stride = {};
  Size2 padding = 0;
  Size2 dilation = 1;
  bool ceil_mode = false;
};
struct AvgPool1dOptions {
  std::optional<std::int64_t> stride = {};
  std::int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< zeros of the padding count in the mean
};
struct AvgPool2dOptions {
  std::optional<Size2> stride = {};
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override = {};
};

/// The largest element of each window; NaN propagates. The gradient goes to the first largest
/// element of a window (of several NaN, to the last).
///
/// Shapes    oh = ⌊(h + 2·padding - dilation·(kernel - 1) - 1) / stride⌋ + 1; ceil_mode rounds the
///           quotient up, but drops a last window that begins after the image
/// Throws    ShapeError; DTypeError unless floating point; ArgumentError for a kernel, stride or
///           dilation below 1, and for a padding below 0 or above half the kernel
///
///     max_pool2d(randn({8, 3, 32, 32}), 2);                               // [8, 3, 16, 16]
///     max_pool2d(randn({8, 3, 32, 32}), 3, {.stride = 2, .padding = 1});  // [8, 3, 16, 16]
[[nodiscard]] Tensor max_pool2d(const Tensor& x, Size2 kernel,
                                const MaxPool2dOptions& options = {});
[[nodiscard]] Tensor max_pool1d(const Tensor& x, std::int64_t kernel,
                                const MaxPool1dOptions& options = {});
/// LibTorch's form, with the options in order.
[[nodiscard]] inline Tensor max_pool2d(const Tensor& x, Size2 kernel, Size2 stride,
                                       Size2 padding = 0, Size2 dilation = 1,
                                       bool ceil_mode = false) {
  return max_pool2d(
      x, kernel,
      MaxPool2dOptions{
          .stride = stride, .padding = padding, .dilation = dilation, .ceil_mode = ceil_mode});
}
[[nodiscard]] inline Tensor max_pool1d(const Tensor& x, std::int64_t kernel, std::int64_t stride,
                                       std::int64_t padding = 0, std::int64_t dilation = 1,
                                       bool ceil_mode = false) {
  return max_pool1d(
      x, kernel,
      MaxPool1dOptions{
          .stride = stride, .padding = padding, .dilation = dilation, .ceil_mode = ceil_mode});
}
/// The result, and the index of each element: int64, row-major within its image (PyTorch's
/// return_indices). Of several largest elements the first, of several NaN the last.
[[nodiscard]] std::pair<Tensor, Tensor> max_pool2d_with_indices(
    const Tensor& x, Size2 kernel, const MaxPool2dOptions& options = {});
[[nodiscard]] std::pair<Tensor, Tensor> max_pool1d_with_indices(
    const Tensor& x, std::int64_t kernel, const MaxPool1dOptions& options = {});

/// The mean of each window. Shapes and errors as max_pool2d; also ArgumentError for a
/// divisor_override below 1.
[[nodiscard]] Tensor avg_pool2d(const Tensor& x, Size2 kernel,
                                const AvgPool2dOptions& options = {});
[[nodiscard]] Tensor avg_pool1d(const Tensor& x, std::int64_t kernel,
                                const AvgPool1dOptions& options = {});

/// LibTorch's form, with the options in order.
[[nodiscard]] inline Tensor avg_pool2d(const Tensor& x, Size2 kernel, Size2 stride,
                                       Size2 padding = 0, bool ceil_mode = false,
                                       bool count_include_pad = true,
                                       std::optional<std::int64_t> divisor_override = {}) {
  return avg_pool2d(x, kernel,
                    AvgPool2dOptions{.stride = stride,
                                     .padding = padding,
                                     .ceil_mode = ceil_mode,
                                     .count_include_pad = count_include_pad,
                                     .divisor_override = divisor_override});
}

/// The mean, or the largest element, of each of `size` parts of the image, which are [⌊o·h / oh⌋,
/// ⌈(o + 1)·h / oh⌉).
///
/// Throws    ArgumentError for a size below 1
[[nodiscard]] Tensor adaptive_avg_pool2d(const Tensor& x, Size2 size);
[[nodiscard]] Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t size);
[[nodiscard]] Tensor adaptive_max_pool2d(const Tensor& x, Size2 size);

/// How interpolate computes an element of the result.
enum class Interpolation : std::uint8_t {
  nearest,  ///< the element at ⌊o·h / oh⌋
  linear,   ///< between the two neighbours of a sequence
  bilinear  ///< between the four neighbours in an image
};
/// A factor for the height and one for the width; one number sets both.
struct Factor2 {
  double height, width;
  constexpr Factor2(double both) : height(both), width(both) {}
  constexpr Factor2(double h, double w) : height(h), width(w) {}
};
/// Either a size, or factors by which x grows (the sizes are rounded down).
struct InterpolateOptions {
  std::optional<Size2> size = {};
  std::optional<Factor2> scale_factor = {};
  Interpolation mode = Interpolation::nearest;
  /// aligns the corner elements of both images (linear and bilinear):
  /// source = o·(h - 1) / (oh - 1), else (o + ½)·h / oh - ½
  bool align_corners = false;
  /// With scale_factor: use the ratio of the two sizes, as if `size` were given.
  bool recompute_scale_factor = false;
};
/// Resizes x: [n, c, h, w] with nearest or bilinear, [n, c, l] with nearest or linear, for which
/// only the width of size or scale_factor is used. As in PyTorch, a given factor is used itself,
/// not the ratio of the two sizes, unless recompute_scale_factor is set; linear and bilinear copy
/// where these are equal. With a size, nearest is exact, in integers (PyTorch uses a float factor,
/// whose result may be off by one).
///
/// Throws    ShapeError, also for a mode that does not fit x's rank; DTypeError unless floating
///           point; ArgumentError for neither or both of size and scale_factor, a size below 1, a
///           factor not above 0, align_corners with nearest, and recompute_scale_factor with a size
///
///     const Tensor image = randn({8, 3, 32, 32});
///     interpolate(image, {.size = 64});  // 64 × 64
///     interpolate(image, {.scale_factor = 1.5, .mode = Interpolation::bilinear});  // 48 × 48
[[nodiscard]] Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace braid
