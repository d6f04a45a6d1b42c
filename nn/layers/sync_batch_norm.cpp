#include <mutex>

#include <braid/core/checkpoint.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/statistics_type.hpp>
#include <braid/core/internal/storage_mutex.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/norm.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/replica_group.hpp>

#include "layers/call.hpp"

namespace braid::nn {
namespace {

/// All dims except that of the channels.
Shape others(int rank) {
  Shape dims;
  for (int d = 0; d < rank; ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}

/// Reshapes [channels] to [1, channels, 1, ..].
Tensor channels_of(const Tensor& t, int rank) {
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(d == 1 ? t.size(0) : 1);
  return t.reshape(shape);
}

}  // namespace

Tensor SyncBatchNorm::forward(const Tensor& x) const {
  if (x.dim() < 2 || x.size(1) != num_features)
    throw ShapeError(str("SyncBatchNorm: expected x [n, ", num_features, ", ..], got ", x.shape()));
  return apply_synchronised("SyncBatchNorm", x);
}
BRAID_LAYER_CALL(Tensor, SyncBatchNorm, (const Tensor& x), (x))

Tensor detail::BatchNorm::apply_synchronised(const char* name, const Tensor& x) const {
  // The checks of batch_norm, before any replica waits for another.
  if (!is_floating(x.dtype()))
    throw DTypeError(str(name, ": expected floating point, got ", x.dtype()));
  if (!(eps >= 0)) throw ArgumentError(str(name, ": expected eps >= 0, got ", eps));
  if (momentum && !(*momentum >= 0 && *momentum <= 1))
    throw ArgumentError(str(name, ": expected 0 <= momentum <= 1, got ", *momentum));
  const bool by_batch = training || !running_mean.defined();
  ReplicaGroup* const group = replica_group();
  if (!by_batch || !group || group->size() == 1)
    return batch_norm(x,
                      RunningStatistics{running_mean, running_var, num_batches_tracked, momentum},
                      weight, bias, by_batch, eps);

  const int rank = x.dim();
  const Shape dims = others(rank);
  const Tensor wide = x.to(statistics_type(x.dtype()));
  const double count =
      group->all_reduce(num_features ? static_cast<double>(x.numel() / num_features) : 0);
  if (training && count < 2)
    throw ArgumentError(str(name, ": expected more than one value a channel in training, got ",
                            count, " in all replicas"));
  const Tensor mean = group->all_reduce({sum(wide, dims)})[0] / count;
  const Tensor centred = wide - channels_of(mean, rank);
  const Tensor squares = group->all_reduce({sum(centred * centred, dims)})[0];
  const Tensor var = squares / count;
  Tensor y = centred * channels_of(rsqrt(var + eps), rank);
  if (weight.defined()) y = y * channels_of(weight.to(wide.dtype()), rank);
  if (bias.defined()) y = y + channels_of(bias.to(wide.dtype()), rank);

  if (training && running_mean.defined() && !braid::detail::recomputing()) {
    const NoGrad guard;
    const std::lock_guard lock(braid::detail::mutex_of(*running_mean.storage()));
    num_batches_tracked.add_(1);
    const double factor = momentum ? *momentum : 1 / num_batches_tracked.item<double>();
    running_mean.mul_(1 - factor).add_(mean.detach().to(running_mean.dtype()), factor);
    running_var.mul_(1 - factor)
        .add_((squares.detach() / (count - 1)).to(running_var.dtype()), factor);
  }
  return y.to(x.dtype());
}

}  // namespace braid::nn
