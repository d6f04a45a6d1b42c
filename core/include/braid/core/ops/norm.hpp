#pragma once
#include <optional>

#include <braid/core/tensor.hpp>

// Normalisations: y = (x - mean) / sqrt(var + eps) * weight + bias, where var is the mean of
// (x - mean)². Statistics are computed in float32, or in float64 for float64; their sums have a
// fixed order. weight and bias have the dtype of x and may be undefined. Gradients to x, weight and
// bias; gradients of gradients use recorded ops.
namespace braid {

/// Normalises each slice over the last dims by its own statistics.
///
/// Shapes    x [.., normalized_shape] → y, same shape; weight and bias normalized_shape
/// Types     floating point, one dtype
/// Gradient  dx = rstd (g - mean(g) - h mean(g h)), where g = dy weight and h is the normalised x;
///           dweight = Σ dy h, dbias = Σ dy
/// Throws    ShapeError unless x ends in normalized_shape, which needs at least one dim, and weight
///           and bias have that shape; ArgumentError unless eps >= 0; DTypeError; DeviceError
/// Source    Ba, Kiros, Hinton 2016, arXiv:1607.06450
///
///     layer_norm(randn({8, 64}), {64}, ones({64}), zeros({64}));
[[nodiscard]] Tensor layer_norm(const Tensor& x, const Shape& normalized_shape,
                                const Tensor& weight = {}, const Tensor& bias = {},
                                double eps = 1e-5);

/// y = x / sqrt(mean(x²) + eps) * weight. By default eps is the machine epsilon of float64 for
/// float64, and that of float32 for the other dtypes.
///
/// Others    shapes, types and errors as layer_norm; the gradient lacks the term mean(g)
/// Source    Zhang, Sennrich 2019, arXiv:1910.07467
[[nodiscard]] Tensor rms_norm(const Tensor& x, const Shape& normalized_shape,
                              const Tensor& weight = {}, std::optional<double> eps = {});

/// Normalises each of num_groups groups of channels of each sample by its own statistics.
///
/// Shapes    x [n, channels, ..] → y, same shape; weight and bias [channels]
/// Types     floating point, one dtype
/// Throws    ShapeError unless x has at least two dims, num_groups divides the channels, and weight
///           and bias fit; ArgumentError unless num_groups >= 1 and eps >= 0, and for one sample
///           with one value per group (nothing to normalise), as in PyTorch; DTypeError;
///           DeviceError
/// Source    Wu, He 2018, arXiv:1803.08494
[[nodiscard]] Tensor group_norm(const Tensor& x, std::int64_t num_groups, const Tensor& weight = {},
                                const Tensor& bias = {}, double eps = 1e-5);

/// What batch norm updates in each training step; undefined tensors are left out.
struct RunningStatistics {
  Tensor mean, var;                 ///< [channels], floating point
  Tensor num_batches_tracked = {};  ///< one int64
  /// nullopt: the mean over all batches so far, which needs num_batches_tracked
  std::optional<double> momentum = 0.1;
};

/// Normalises each channel by its statistics over the batch; if `training` is false, by the running
/// statistics.
///
/// Shapes    x [n, channels] or [n, channels, ..] → y, same shape; all others [channels]
/// Types     floating point, one dtype for x, weight and bias
/// Running   in training, running = (1 - momentum) running + momentum * batch, where the variance
///           of the batch is the unbiased one, with n - 1. All buffers are updated in place, under
///           the lock of the first buffer's storage; their versions increase
/// Gradient  to x, weight and bias; none to the running statistics
/// Throws    ArgumentError for one value per channel in training, for missing running statistics in
///           evaluation, for a momentum outside [0, 1], for a running mean with neither momentum
///           nor num_batches_tracked, and unless eps >= 0; ShapeError; DTypeError; DeviceError
/// Source    Ioffe, Szegedy 2015, arXiv:1502.03167
[[nodiscard]] Tensor batch_norm(const Tensor& x, const RunningStatistics& running,
                                const Tensor& weight = {}, const Tensor& bias = {},
                                bool training = false, double eps = 1e-5);
/// The same in PyTorch's order of arguments.
[[nodiscard]] Tensor batch_norm(const Tensor& x, const Tensor& running_mean,
                                const Tensor& running_var, const Tensor& weight = {},
                                const Tensor& bias = {}, bool training = false,
                                double momentum = 0.1, double eps = 1e-5);

}  // namespace braid
