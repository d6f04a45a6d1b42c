#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/nn/module.hpp>

// Normalisations as layers; names of parameters and buffers, defaults and starts (weight 1, bias 0)
// as PyTorch's.
namespace braid::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// layer_norm over the last dims: weight and bias [normalized_shape]. Throws ShapeError for a shape
/// without dims.
struct LayerNorm : Module {
  Shape normalized_shape;
  double eps;
  Parameter weight, bias;

  explicit LayerNorm(const Shape& over, const LayerNormOptions& options = {});
  explicit LayerNorm(std::int64_t features, const LayerNormOptions& options = {})
      : LayerNorm(Shape{features}, options) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias)
};

struct RMSNormOptions {
  std::optional<double> eps = {};  ///< the machine epsilon of x's dtype unless given
  bool elementwise_affine = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// rms_norm over the last dims: weight [normalized_shape].
struct RMSNorm : Module {
  Shape normalized_shape;
  std::optional<double> eps;
  Parameter weight;

  explicit RMSNorm(const Shape& over, const RMSNormOptions& options = {});
  explicit RMSNorm(std::int64_t features, const RMSNormOptions& options = {})
      : RMSNorm(Shape{features}, options) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight)
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// group_norm: weight and bias [channels]. Throws ArgumentError unless num_groups divides the
/// channels.
struct GroupNorm : Module {
  std::int64_t num_groups, num_channels;
  double eps;
  Parameter weight, bias;

  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias)
};

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: the mean over all batches so far
  bool affine = true;
  bool track_running_stats = true;  ///< false: by the batch's statistics in evaluation too
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

namespace detail {
/// What BatchNorm1d and 2d share.
struct BatchNorm : Module {
  std::int64_t num_features;
  double eps;
  std::optional<double> momentum;
  Parameter weight, bias;
  Buffer running_mean, running_var, num_batches_tracked;

  BatchNorm(const char* name, std::int64_t features, const BatchNormOptions& options);
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias, running_mean, running_var, num_batches_tracked)

 protected:
  [[nodiscard]] Tensor apply(const char* name, const Tensor& x, int rank, int other_rank) const;
  /// By the statistics of all replicas that run with this one, if there are others.
  [[nodiscard]] Tensor apply_synchronised(const char* name, const Tensor& x) const;
};
}  // namespace detail

/// batch_norm of [n, features] or [n, features, length]. In training it writes the buffers, under
/// the lock of their storage, though operator() is const: in DataParallel those of replica 0 stay,
/// so that the running statistics are those of its chunk; with its `shards` the statistics are
/// those of the whole batch,
/// as SyncBatchNorm takes them. Throws ArgumentError for one value a channel in training;
/// ShapeError for another rank or number of features.
struct BatchNorm1d : detail::BatchNorm {
  explicit BatchNorm1d(std::int64_t features, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm1d", features, options) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return apply("BatchNorm1d", x, 2, 3); }
  BRAID_FIELDS_OF(BatchNorm)
};

/// The same of [n, features, height, width].
struct BatchNorm2d : detail::BatchNorm {
  explicit BatchNorm2d(std::int64_t features, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm2d", features, options) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return apply("BatchNorm2d", x, 4, 4); }
  BRAID_FIELDS_OF(BatchNorm)
};

/// Batch norm by the statistics of the whole batch, whatever DataParallel splits it into: the
/// replicas add their sums, forward and backward, and all write the same running statistics.
/// Outside of DataParallel, on one device and in evaluation it is BatchNorm of x [n, features, ..].
///
/// Gradient  to x, weight, bias, through the statistics of all replicas; gradients of gradients too
/// Throws    ArgumentError for one value a channel in the whole batch in training, or if a replica
///           ends without coming to this layer; ShapeError
/// Notes     mean first, then the sum of squared differences: two sums over the replicas a forward.
///           Every replica has to call it, in the same order
struct SyncBatchNorm : detail::BatchNorm {
  explicit SyncBatchNorm(std::int64_t features, const BatchNormOptions& options = {})
      : BatchNorm("SyncBatchNorm", features, options) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS_OF(BatchNorm)
};

}  // namespace braid::nn
