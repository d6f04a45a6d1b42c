#include <braid/core/error.hpp>
#include <braid/core/ops/composed.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/norm.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/replica_group.hpp>

#include "layers/call.hpp"

namespace braid::nn {
namespace {

const char* yes_no(bool b) { return b ? "true" : "false"; }

/// Formats a shape as Python formats a tuple: `(5,)` for one dim.
std::string tuple_of(const Shape& shape) {
  std::string text = "(";
  for (int d = 0; d < shape.rank(); ++d) text += str(d > 0 ? ", " : "", shape[d]);
  return text + (shape.rank() == 1 ? ",)" : ")");
}
void check_sizes(const char* name, const Shape& shape) {
  if (shape.rank() == 0)
    throw ShapeError(str(name, ": expected a normalized_shape of at least one dim, got []"));
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] < 0) throw ArgumentError(str(name, ": expected sizes >= 0, got ", shape));
  (void)checked_numel(name, shape, 8);  // bytes of the widest dtype
}

}  // namespace

LayerNorm::LayerNorm(const Shape& over, const LayerNormOptions& options)
    : normalized_shape(over), eps(options.eps) {
  check_sizes("LayerNorm", over);
  const FactoryOptions made{.device = options.device, .dtype = options.dtype};
  if (options.elementwise_affine) weight = Parameter(ones(over, made));
  if (options.elementwise_affine && options.bias) bias = Parameter(zeros(over, made));
}
LayerNorm::LayerNorm(std::int64_t size, const LayerNormOptions& options)
    : LayerNorm(Shape{size}, options) {}
Tensor LayerNorm::forward(const Tensor& x) const {
  return layer_norm(x, normalized_shape, weight, bias, eps);
}
BRAID_LAYER_CALL(Tensor, LayerNorm, (const Tensor& x), (x))
std::string LayerNorm::extra() const {
  return str(tuple_of(normalized_shape), ", eps=", eps,
             ", elementwise_affine=", yes_no(weight.defined()));
}

RMSNorm::RMSNorm(const Shape& over, const RMSNormOptions& options)
    : normalized_shape(over), eps(options.eps) {
  check_sizes("RMSNorm", over);
  if (options.elementwise_affine)
    weight = Parameter(ones(over, {.device = options.device, .dtype = options.dtype}));
}
RMSNorm::RMSNorm(std::int64_t size, const RMSNormOptions& options)
    : RMSNorm(Shape{size}, options) {}
Tensor RMSNorm::forward(const Tensor& x) const {
  return rms_norm(x, normalized_shape, weight, eps);
}
BRAID_LAYER_CALL(Tensor, RMSNorm, (const Tensor& x), (x))
std::string RMSNorm::extra() const {
  return str(tuple_of(normalized_shape), ", eps=", eps ? str(*eps) : std::string("none"),
             ", elementwise_affine=", yes_no(weight.defined()));
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options)
    : num_groups(groups), num_channels(channels), eps(options.eps) {
  if (groups < 1 || channels < 0 || channels % groups != 0)
    throw ArgumentError(str("GroupNorm: expected num_groups >= 1 that divides num_channels, got ",
                            groups, " and ", channels));
  const FactoryOptions made{.device = options.device, .dtype = options.dtype};
  if (!options.affine) return;
  weight = Parameter(ones({channels}, made));
  bias = Parameter(zeros({channels}, made));
}
Tensor GroupNorm::forward(const Tensor& x) const {
  if (x.dim() > 1 && x.size(1) != num_channels)
    throw ShapeError(str("GroupNorm: expected x [n, ", num_channels, ", ..], got ", x.shape()));
  return group_norm(x, num_groups, weight, bias, eps);
}
BRAID_LAYER_CALL(Tensor, GroupNorm, (const Tensor& x), (x))
std::string GroupNorm::extra() const {
  return str(num_groups, ", ", num_channels, ", eps=", eps, ", affine=", yes_no(weight.defined()));
}

namespace detail {

InstanceNorm::InstanceNorm(int batch_rank, std::int64_t features,
                           const InstanceNormOptions& options)
    : num_features(features), eps(options.eps), rank(batch_rank) {
  if (features < 0)
    throw ArgumentError(
        str("InstanceNorm", rank - 2, "d: expected num_features >= 0, got ", features));
  const FactoryOptions made{.device = options.device, .dtype = options.dtype};
  if (!options.affine) return;
  weight = Parameter(ones({features}, made));
  bias = Parameter(zeros({features}, made));
}
Tensor InstanceNorm::forward(const Tensor& x) const {
  const bool batched = x.dim() == rank;
  if ((!batched && x.dim() != rank - 1) || x.size(batched ? 1 : 0) != num_features)
    throw ShapeError(str("InstanceNorm", rank - 2, "d: expected x of rank ", rank, " or ", rank - 1,
                         " with ", num_features, " features in dim ", batched ? 1 : 0, ", got ",
                         x.shape()));
  return batched ? instance_norm(x, weight, bias, eps)
                 : instance_norm(x.unsqueeze(0), weight, bias, eps).squeeze(0);
}
BRAID_LAYER_CALL(Tensor, InstanceNorm, (const Tensor& x), (x))
std::string InstanceNorm::extra() const {
  return str(num_features, ", eps=", eps, ", affine=", yes_no(weight.defined()));
}

BatchNorm::BatchNorm(const char* name, std::int64_t features, const BatchNormOptions& options)
    : num_features(features), eps(options.eps), momentum(options.momentum) {
  if (features < 0) throw ArgumentError(str(name, ": expected num_features >= 0, got ", features));
  const FactoryOptions made{.device = options.device, .dtype = options.dtype};
  if (options.affine) {
    weight = Parameter(ones({features}, made));
    bias = Parameter(zeros({features}, made));
  }
  if (!options.track_running_stats) return;
  running_mean = Buffer(zeros({features}, made));
  running_var = Buffer(ones({features}, made));
  num_batches_tracked = Buffer(zeros({}, {.device = options.device, .dtype = DType::int64}));
}

Tensor BatchNorm::apply(const char* name, const Tensor& x, int rank, int other_rank) const {
  if ((x.dim() != rank && x.dim() != other_rank) || x.size(1) != num_features)
    throw ShapeError(str(name, ": expected x of rank ", rank,
                         rank == other_rank ? std::string() : str(" or ", other_rank), " with ",
                         num_features, " features in dim 1, got ", x.shape()));
  if (const ReplicaGroup* const group = replica_group(); group && group->virtual_replicas())
    return apply_synchronised(name, x);
  const RunningStatistics running{running_mean, running_var, num_batches_tracked, momentum};
  return batch_norm(x, running, weight, bias, training || !running_mean.defined(), eps);
}
std::string BatchNorm::extra() const {
  return str(num_features, ", eps=", eps,
             ", momentum=", momentum ? str(*momentum) : std::string("none"),
             ", affine=", yes_no(weight.defined()),
             ", track_running_stats=", yes_no(running_mean.defined()));
}

}  // namespace detail

BatchNorm1d::BatchNorm1d(std::int64_t features, const BatchNormOptions& options)
    : BatchNorm("BatchNorm1d", features, options) {}
BatchNorm2d::BatchNorm2d(std::int64_t features, const BatchNormOptions& options)
    : BatchNorm("BatchNorm2d", features, options) {}
SyncBatchNorm::SyncBatchNorm(std::int64_t features, const BatchNormOptions& options)
    : BatchNorm("SyncBatchNorm", features, options) {}

Tensor BatchNorm1d::forward(const Tensor& x) const { return apply("BatchNorm1d", x, 2, 3); }
BRAID_LAYER_CALL(Tensor, BatchNorm1d, (const Tensor& x), (x))
Tensor BatchNorm2d::forward(const Tensor& x) const { return apply("BatchNorm2d", x, 4, 4); }
BRAID_LAYER_CALL(Tensor, BatchNorm2d, (const Tensor& x), (x))

BRAID_FIELDS_DEFINED(LayerNorm, weight, bias)
BRAID_FIELDS_DEFINED(RMSNorm, weight)
BRAID_FIELDS_DEFINED(GroupNorm, weight, bias)
BRAID_FIELDS_DEFINED(detail::InstanceNorm, weight, bias)
BRAID_FIELDS_DEFINED(detail::BatchNorm, weight, bias, running_mean, running_var,
                     num_batches_tracked)

}  // namespace braid::nn
