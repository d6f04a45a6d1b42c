#pragma once
#include <optional>

#include <braid/core/tensor.hpp>

// Normalisations: y = (x - mean) / sqrt(var + eps) * weight + bias, var the mean of (x - mean)².
// Statistics are taken in float32, or in float64 for float64;
// their sums have a fixed order. weight and bias have the dtype of x, and may be undefined.
// Gradients of x, weight and bias; gradients of gradients by recorded ops.
namespace braid {

/// Each slice over the last dims by its own statistics.
///
/// Shapes    x [.., normalized_shape] → y, same shape; weight and bias normalized_shape
/// Types     floating point, one dtype
/// Gradient  dx = rstd (g - mean of g - h mean of g h), g = dy weight, h the normalised x; dweight
///           = Σ dy h, dbias = Σ dy
/// Throws    ShapeError unless x ends in normalized_shape, which has a dim, and weight and bias
///           fit; ArgumentError unless eps >= 0; DTypeError; DeviceError
/// Source    Ba, Kiros, Hinton 2016, arXiv:1607.06450
[[nodiscard]] Tensor layer_norm(const Tensor& x, const Shape& normalized_shape,
                                const Tensor& weight = {}, const Tensor& bias = {},
                                double eps = 1e-5);

/// y = x / sqrt(mean of x² + eps) * weight. eps: the machine epsilon of the dtype unless given.
///
/// Shapes, types, errors as layer_norm; gradient without the mean of g
/// Source    Zhang, Sennrich 2019, arXiv:1910.07467
[[nodiscard]] Tensor rms_norm(const Tensor& x, const Shape& normalized_shape,
                              const Tensor& weight = {}, std::optional<double> eps = {});

/// Each of num_groups groups of channels of each sample by its own statistics.
///
/// Shapes    x [n, channels, ..] → y, same shape; weight and bias [channels]
/// Types     floating point, one dtype
/// Throws    ShapeError unless x has two dims, num_groups divides the channels and weight and bias
///           fit; ArgumentError unless num_groups >= 1 and eps >= 0, and for one value a group in
///           all (nothing to normalise), as PyTorch; DTypeError; DeviceError
/// Source    Wu, He 2018, arXiv:1803.08494
[[nodiscard]] Tensor group_norm(const Tensor& x, std::int64_t num_groups, const Tensor& weight = {},
                                const Tensor& bias = {}, double eps = 1e-5);

/// What batch norm keeps from step to step; undefined ones are not kept.
struct RunningStatistics {
  Tensor mean, var;                 ///< [channels], floating point
  Tensor num_batches_tracked = {};  ///< one int64
  /// none: the mean over all batches so far, which needs num_batches_tracked
  std::optional<double> momentum = 0.1;
};

/// Each channel by its statistics over the batch; with `training` false by the running ones.
///
/// Shapes    x [n, channels] or [n, channels, ..] → y, same shape; all others [channels]
/// Types     floating point, one dtype for x, weight and bias
/// Running   in training: running = (1 - momentum) running + momentum of this batch, the variance
///           with n / (n - 1); in place, one critical section under the lock of the first buffer's
///           storage, versions bumped
/// Gradient  to x, weight, bias; none to the running statistics
/// Throws    ArgumentError for one value a channel in training, without running statistics in
///           evaluation, for a momentum outside [0, 1], unless eps >= 0;
///           ShapeError; DTypeError; DeviceError
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
