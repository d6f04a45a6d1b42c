#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/nn/module.hpp>

// Normalisation layers. Names of parameters and buffers, defaults and initial values (weight 1,
// bias 0) are PyTorch's.
namespace braid::nn {

/// The options of LayerNorm.
struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// braid::layer_norm over the last dims; weight and bias [normalized_shape].
///
/// Throws    ShapeError if the shape has no dims
///
///     const nn::LayerNorm norm(64);
///     norm(randn({8, 100, 64}));
struct LayerNorm : Module {
  Shape normalized_shape;
  double eps;
  Parameter weight, bias;

  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  explicit LayerNorm(std::int64_t normalized_shape, const LayerNormOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};

/// The options of RMSNorm.
struct RMSNormOptions {
  std::optional<double> eps = {};  ///< default: that of braid::rms_norm
  bool elementwise_affine = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// braid::rms_norm over the last dims; weight [normalized_shape].
struct RMSNorm : Module {
  Shape normalized_shape;
  std::optional<double> eps;
  Parameter weight;

  explicit RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
  explicit RMSNorm(std::int64_t normalized_shape, const RMSNormOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight)
};

/// The options of GroupNorm.
struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// braid::group_norm; weight and bias [channels].
///
/// Throws    ArgumentError unless num_groups divides the number of channels
struct GroupNorm : Module {
  std::int64_t num_groups, num_channels;
  double eps;
  Parameter weight, bias;

  GroupNorm(std::int64_t num_groups, std::int64_t num_channels,
            const GroupNormOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};

/// The options of InstanceNorm1d and InstanceNorm2d. Braid keeps no running statistics of single
/// samples: training and evaluation are the same, as with track_running_stats=False in PyTorch.
struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

namespace detail {
/// The common part of InstanceNorm1d and InstanceNorm2d.
struct InstanceNorm : Module {
  std::int64_t num_features;
  double eps;
  int rank;  ///< of a batch
  Parameter weight, bias;

  InstanceNorm(int rank, std::int64_t num_features, const InstanceNormOptions& options);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};
}  // namespace detail

/// braid::instance_norm of x [n, features, length] or [features, length]: each channel of each
/// sample has its own mean and variance.
///
/// Throws    ShapeError for another rank or number of features
/// Source    Ulyanov, Vedaldi, Lempitsky 2016, arXiv:1607.08022
struct InstanceNorm1d : detail::InstanceNorm {
  explicit InstanceNorm1d(std::int64_t features, const InstanceNormOptions& options = {})
      : InstanceNorm(3, features, options) {}
  BRAID_FIELDS_OF(InstanceNorm)
};
/// The same of x [n, features, height, width] or [features, height, width].
///
///     nn::InstanceNorm2d norm(16, {.affine = true});
struct InstanceNorm2d : detail::InstanceNorm {
  explicit InstanceNorm2d(std::int64_t features, const InstanceNormOptions& options = {})
      : InstanceNorm(4, features, options) {}
  BRAID_FIELDS_OF(InstanceNorm)
};

/// The options of BatchNorm1d, BatchNorm2d and SyncBatchNorm.
struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< empty: the mean over all batches so far
  bool affine = true;
  bool track_running_stats = true;  ///< false: evaluation uses the batch's statistics
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

namespace detail {
/// The common part of BatchNorm1d, BatchNorm2d and SyncBatchNorm.
struct BatchNorm : Module {
  std::int64_t num_features;
  double eps;
  std::optional<double> momentum;
  Parameter weight, bias;
  Buffer running_mean, running_var, num_batches_tracked;

  BatchNorm(const char* name, std::int64_t num_features, const BatchNormOptions& options);
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias, running_mean, running_var, num_batches_tracked)

 protected:
  [[nodiscard]] Tensor apply(const char* name, const Tensor& x, int rank, int other_rank) const;
  /// Normalises by the statistics of all replicas that run with this one, if there are others.
  [[nodiscard]] Tensor apply_synchronised(const char* name, const Tensor& x) const;
};
}  // namespace detail

/// braid::batch_norm of x [n, features] or [n, features, length].
///
/// Buffers   a training call updates them in place, under the lock of their storage, although
///           operator() is const. In DataParallel those of replica 0 are kept, so the running
///           statistics are those of its chunk. In a DeterministicDataParallel the statistics are
///           those of the whole batch, as in SyncBatchNorm
/// Throws    ArgumentError if a channel has only one value in training; ShapeError for another rank
///           or number of features
struct BatchNorm1d : detail::BatchNorm {
  explicit BatchNorm1d(std::int64_t num_features, const BatchNormOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS_OF(BatchNorm)
};

/// braid::batch_norm of x [n, features, height, width]. Otherwise as BatchNorm1d.
///
///     nn::BatchNorm2d norm(16, {.momentum = 0.01});
///     norm(randn({8, 16, 32, 32}));  // in training this updates the running statistics
///     eval(norm);
struct BatchNorm2d : detail::BatchNorm {
  explicit BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS_OF(BatchNorm)
};

/// Batch norm with the statistics of the whole batch when DataParallel splits it: the replicas add
/// up their sums, in forward and backward, and all write the same running statistics. Outside of
/// DataParallel, on one device and in evaluation it is ordinary batch norm of x [n, features, ..].
///
/// Gradient  to x, weight and bias, through the statistics of all replicas; of any order
/// Throws    ArgumentError in training if a channel has only one value in the whole batch, or if a
///           replica returns without calling this layer; ShapeError
/// Notes     computes the mean first, then the sum of squared differences: each forward makes two
///           all-reduces of tensors, and one of the number of values. Every replica must call it,
///           in the same order
struct SyncBatchNorm : detail::BatchNorm {
  explicit SyncBatchNorm(std::int64_t num_features, const BatchNormOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS_OF(BatchNorm)
};

}  // namespace braid::nn
