// Batch norm: normalises each channel with the statistics of the batch, or with running statistics.
#include <mutex>

#include <braid/core/checkpoint.hpp>
#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/norm.hpp>
#include <braid/core/internal/storage_mutex.hpp>

#include "norm.hpp"

namespace braid {
namespace ops {
namespace {

constexpr const char* kOp = "batch_norm";

/// The sizes of x as [batch, channels, inner].
struct Channels {
  std::int64_t batch, channels, inner;
  [[nodiscard]] std::int64_t values() const { return batch * inner; }
};

NormView view_of(const Channels& c, double eps) {
  return {{c.batch, c.channels, c.inner}, {0, 2}, {c.channels, 1}, true, eps};
}

/// Returns y. With `var`, computes mean, rstd and var of the batch; else uses the given mean and
/// rstd.
Tensor normalise(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                 const Tensor& rstd, const Tensor& var, const Channels& c, double eps) {
  Tensor y = make_tensor(x.shape(), x.dtype(), x.device());
  if (x.numel())
    launch(
        kOp, x.device(), &KernelTable::norm_channels,
        NormChannelsArgs{x.dtype(), !var.defined(), x.id()->data(), data_or_null(weight),
                         data_or_null(bias), y.id()->data(), mean.id()->data(), rstd.id()->data(),
                         data_or_null(var), eps, c.batch, c.channels, c.inner});
  return y;
}

Grads fused_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                     const Tensor& gradient, const Channels& c, Needs needs) {
  const Tensor dy = gradient.contiguous();
  Tensor dx, dweight, dbias;
  if (needs[0]) dx = make_tensor(x.shape(), x.dtype(), x.device());
  if (needs[1]) dweight = make_tensor({c.channels}, x.dtype(), x.device());
  if (needs[2]) dbias = make_tensor({c.channels}, x.dtype(), x.device());
  launch(kOp, x.device(), &KernelTable::norm_channels_backward,
         NormChannelsBackwardArgs{x.dtype(), x.id()->data(), data_or_null(weight),
                                  mean.id()->data(), rstd.id()->data(), dy.id()->data(),
                                  data_or_null(dx), data_or_null(dweight), data_or_null(dbias),
                                  c.batch, c.channels, c.inner});
  return {dx, dweight, dbias};
}

/// Updates running = (1 - factor) running + factor batch, with the unbiased variance. Holds the
/// mutex of the storage throughout.
void update(const RunningStatistics& running, const Tensor& mean, const Tensor& var,
            const Channels& c) {
  const Tensor& first = running.mean.defined()  ? running.mean
                        : running.var.defined() ? running.var
                                                : running.num_batches_tracked;
  if (!first.defined() || detail::recomputing()) return;
  const NoGrad guard;
  const std::lock_guard lock(detail::mutex_of(*first.storage()));
  double factor = running.momentum.value_or(0);
  if (running.num_batches_tracked.defined()) {
    running.num_batches_tracked.add_(1);
    if (!running.momentum) factor = 1 / running.num_batches_tracked.item<double>();
  }
  const double corrected = static_cast<double>(c.values()) / static_cast<double>(c.values() - 1);
  if (running.mean.defined())
    running.mean.mul_(1 - factor).add_(mean.to(running.mean.dtype()), factor);
  if (running.var.defined())
    running.var.mul_(1 - factor).add_(var.to(running.var.dtype()), factor * corrected);
}

void check_running(const char* name, const Tensor& x, const Tensor& t, std::int64_t channels) {
  if (!t.defined()) return;
  check_device(kOp, x, t);
  if (!is_floating(t.dtype()))
    throw DTypeError(str(kOp, ": expected ", name, " of floating point, got ", t.dtype()));
  if (t.shape() != Shape{channels})
    throw ShapeError(
        str(kOp, ": expected ", name, " [", channels, "] for x ", x.shape(), ", got ", t.shape()));
}

void check_count(const Tensor& x, const Tensor& t) {
  if (!t.defined()) return;
  check_device(kOp, x, t);
  if (t.dtype() != DType::int64)
    throw DTypeError(str(kOp, ": expected num_batches_tracked of int64, got ", t.dtype()));
  if (t.numel() != 1)
    throw ShapeError(str(kOp, ": expected num_batches_tracked of one element, got ", t.shape()));
}

Tensor evaluate(const Tensor& x, const RunningStatistics& running, const Tensor& weight,
                const Tensor& bias, const Channels& c, double eps) {
  const NormView view = view_of(c, eps);
  const DType t = statistics_type(x.dtype());
  Tensor mean, rstd;
  {
    const NoGrad guard;
    mean = running.mean.to(t, true).contiguous();
    rstd = rsqrt(running.var.to(t) + eps).contiguous();
  }
  Tensor y = normalise(x, weight, bias, mean, rstd, {}, c, eps);
  if (!needs_grad({x, weight, bias})) return y;
  return record(
      kOp, {x, weight, bias}, y,
      [sx = SavedTensor(x), sw = SavedTensor(weight), mean, rstd, view, t](const Tensor& dy,
                                                                           Needs needs) -> Grads {
        const Tensor saved = sx.get(), w = sw.get(), d = dy.to(t).reshape(view.shape),
                     r = rstd.reshape(view.affine);
        Tensor dx, dweight, dbias;
        if (needs[0])
          dx = (d * (w.defined() ? r * w.to(t).reshape(view.affine) : r))
                   .reshape(saved.shape())
                   .to(saved.dtype());
        if (needs[1])
          dweight = sum_to(d * ((saved.to(t).reshape(view.shape) - mean.reshape(view.affine)) * r),
                           view.affine)
                        .flatten()
                        .to(saved.dtype());
        if (needs[2]) dbias = sum_to(d, view.affine).flatten().to(saved.dtype());
        return {dx, dweight, dbias};
      });
}

}  // namespace
}  // namespace ops

Tensor batch_norm(const Tensor& input, const RunningStatistics& running, const Tensor& weight_in,
                  const Tensor& bias_in, bool training, double eps) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return batch_norm(full(input), running, full(weight_in), full(bias_in), training, eps);
  }
  using namespace ops;
  check_floating(kOp, input);
  if (input.dim() < 2)
    throw ShapeError(str(kOp, ": expected x [n, channels, ..], got ", input.shape()));
  Channels c{input.shape()[0], input.shape()[1], 1};
  for (int d = 2; d < input.dim(); ++d) c.inner *= input.shape()[d];
  check_running("running_mean", input, running.mean, c.channels);
  check_running("running_var", input, running.var, c.channels);
  check_count(input, running.num_batches_tracked);
  check_affine(kOp, "weight", input, weight_in, {c.channels});
  check_affine(kOp, "bias", input, bias_in, {c.channels});
  check_eps(kOp, eps);
  if (running.momentum && !(*running.momentum >= 0 && *running.momentum <= 1))
    throw ArgumentError(str(kOp, ": expected 0 <= momentum <= 1, got ", *running.momentum));
  if (!running.momentum && running.mean.defined() && !running.num_batches_tracked.defined())
    throw ArgumentError(
        str(kOp, ": expected num_batches_tracked where there is no momentum, got none"));
  const Tensor x = input.contiguous(), weight = dense_or_none(weight_in),
               bias = dense_or_none(bias_in);
  if (!training) {
    if (!running.mean.defined() || !running.var.defined())
      throw ArgumentError(str(kOp, ": expected running_mean and running_var in evaluation, got ",
                              running.mean.defined() ? "no running_var" : "no running_mean"));
    return evaluate(x, running, weight, bias, c, eps);
  }
  if (c.values() == 0) {  // no statistics to learn from, as in PyTorch
    Shape of_channel = Shape::filled(x.dim(), 1);
    of_channel[1] = c.channels;
    const Tensor y = weight.defined() ? x * weight.reshape(of_channel) : x * 1.0;
    return bias.defined() ? y + bias.reshape(of_channel) : y;
  }
  if (c.values() < 2)
    throw ArgumentError(str(
        kOp, ": expected more than 1 value per channel when training, got input size ", x.shape()));
  const DType t = statistics_type(x.dtype());
  const Tensor mean = make_tensor({c.channels}, t, x.device()),
               rstd = make_tensor({c.channels}, t, x.device()),
               var = make_tensor({c.channels}, t, x.device());
  Tensor y = normalise(x, weight, bias, mean, rstd, var, c, eps);
  update(running, mean, var, c);
  if (!needs_grad({x, weight, bias})) return y;
  return record(kOp, {x, weight, bias}, y,
                [sx = SavedTensor(x), sw = SavedTensor(weight), mean, rstd, c, eps](
                    const Tensor& dy, Needs needs) -> Grads {
                  const Tensor saved = sx.get(), w = sw.get();
                  if (!needs_grad({saved, w, dy}))
                    return fused_backward(saved, w, mean, rstd, dy, c, needs);
                  return composed_norm_backward(saved, w, dy, view_of(c, eps), {c.channels}, needs);
                });
}

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, double momentum,
                  double eps) {
  return batch_norm(x, RunningStatistics{running_mean, running_var, {}, momentum}, weight, bias,
                    training, eps);
}

}  // namespace braid
