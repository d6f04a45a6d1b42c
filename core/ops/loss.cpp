// Losses with their own kernels: one pass forward and one backward. The backward is itself an op,
// whose gradient consists of plain ops.
#include <algorithm>
#include <limits>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/loss.hpp>
#include <braid/core/internal/statistics_type.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/loss.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

#include "common.hpp"

namespace braid {
namespace {

[[nodiscard]] Tensor number(double value, DType dtype, Device device) {
  return ops::filled({}, value, dtype, device);
}

/// What the gradient of a cross entropy of rows needs besides the logits.
struct Rows {
  Tensor labels, weight, lse, total;  // weight and total may be undefined: all 1
  double label_smoothing;
  std::int64_t ignore_index;
};

template <class Args> void describe(Args& args, const Tensor& x, const Rows& rows) {
  args.dtype = x.dtype();
  args.x = x.id()->data();
  args.labels = static_cast<const std::int64_t*>(rows.labels.id()->data());
  args.label_stride = rows.labels.strides()[0];
  args.lse = rows.lse.id()->data();
  args.scale = 1;
  args.rows = x.shape()[0];
  args.n = x.shape()[1];
  if (rows.weight.defined()) args.weight = rows.weight.id()->data();
  args.label_smoothing = rows.label_smoothing;
  args.ignores = true;
  args.ignore_index = rows.ignore_index;
  if (rows.total.defined()) args.total = rows.total.id()->data();
}

/// Returns the gradient of the rows' losses, f (s softmax(x) - t). t is the weight of each class in
/// a row, s = Σ t, and f = dy, divided by the total for a mean. dy is one number, or one per row.
/// Recorded.
Tensor cross_entropy_backward(const Tensor& x, const Rows& rows, const Tensor& dy) {
  Tensor dx = make_tensor(x.shape(), x.dtype(), x.device());
  const Tensor factor = dy.contiguous();
  if (x.numel()) {
    CrossEntropyBackwardArgs args{};
    describe(args, x, rows);
    args.dy = factor.id()->data();
    args.dy_stride = dy.dim();
    args.dx = dx.id()->data();
    launch("cross_entropy_backward", x.device(), &KernelTable::cross_entropy_backward, args);
  }
  if (!needs_grad({x, dy})) return dx;
  auto gradient = [sx = SavedTensor(x), sd = SavedTensor(dy), sl = SavedTensor(rows.labels),
                   sw = SavedTensor(rows.weight), rows](const Tensor& g, Needs needs) -> Grads {
    (void)sw.get();
    const Tensor logits = sx.get(), labels = sl.get().reshape({-1, 1}), up = sd.get(),
                 p = softmax(logits);
    const double classes = static_cast<double>(logits.shape()[1]), smoothing = rows.label_smoothing;
    Tensor t =
        add(mul(eq(labels, arange(logits.shape()[1], {.device = logits.device()})).to(g.dtype()),
                1 - smoothing),
            smoothing / classes);
    if (rows.weight.defined()) t = t * rows.weight;
    t = where(eq(labels, rows.ignore_index), number(0, g.dtype(), g.device()), t);
    const DType w = statistics_type(g.dtype());  // 16 bits do not hold the number of many labels
    if (rows.total.defined()) t = (t.to(w) / rows.total.to(w)).to(g.dtype());
    const Tensor s = sum(t, {1}, true);
    Tensor dlogits, ddy;
    if (needs[0])
      dlogits = ops::softmax_backward(p, g * (s * (up.dim() ? up.reshape({-1, 1}) : up)), false);
    if (needs[1]) {
      const Tensor each = g * (s * p - t);
      ddy = up.dim() ? sum(each, {1}) : sum(each);
    }
    return {dlogits, ddy};
  };
  return record("cross_entropy_backward", {x, dy}, dx, std::move(gradient));
}

/// A loss and the divisor of its mean, or a loss and a weight for each label.
struct RowLoss {
  Tensor loss, total;
};
/// x: logits [rows, classes]; labels: [rows].
RowLoss cross_entropy_rows(const Tensor& x, const Tensor& labels, const CrossEntropyOptions& o,
                           bool wants_total) {
  const std::int64_t count = x.shape()[0];
  Rows rows{labels,
            o.weight.defined() ? o.weight.detach().contiguous() : Tensor(),
            make_tensor({count}, statistics_type(x.dtype()), x.device()),
            {},
            o.label_smoothing,
            o.ignore_index};
  const Tensor total = wants_total || o.reduction == Reduction::mean
                           ? make_tensor({}, statistics_type(x.dtype()), x.device())
                           : Tensor();
  Tensor loss = make_tensor({}, x.dtype(), x.device());
  if (o.reduction == Reduction::none) loss = make_tensor({count}, x.dtype(), x.device());
  if (count == 0) {
    if (o.reduction != Reduction::none)
      loss = number(o.reduction == Reduction::sum ? 0 : std::numeric_limits<double>::quiet_NaN(),
                    x.dtype(), x.device());
    if (total.defined()) ops::fill_values(total, 0);
  } else {
    CrossEntropyArgs args{};
    describe(args, x, rows);
    args.mean = o.reduction == Reduction::mean;
    const Tensor sum =
        o.reduction == Reduction::none ? make_tensor({}, x.dtype(), x.device()) : loss;
    args.sum = sum.id()->data();
    if (o.reduction == Reduction::none) args.row_loss = loss.id()->data();
    if (total.defined()) args.total = total.id()->data();
    launch("cross_entropy", x.device(), &KernelTable::cross_entropy, args);
  }
  if (!needs_grad({x})) return {loss, total};
  if (o.reduction == Reduction::mean) rows.total = total;
  auto gradient = [sx = SavedTensor(x), sl = SavedTensor(labels), sw = SavedTensor(rows.weight),
                   rows](const Tensor& dy) -> Grads {
    // The kernel reads them again. Throws if they have changed.
    (void)sl.get();
    (void)sw.get();
    return {cross_entropy_backward(sx.get(), rows, dy)};
  };
  return {record("cross_entropy", {x}, loss, std::move(gradient)), total};
}

/// Returns x [n, classes, d1, …] as rows [n · d1 · …, classes].
Tensor as_rows(const Tensor& x) {
  if (x.dim() == 2) return x.contiguous();
  Shape order{0};
  for (int d = 2; d < x.dim(); ++d) order.push_back(d);
  order.push_back(1);
  return x.permute(order).contiguous().reshape(
      {x.numel() / std::max<std::int64_t>(x.shape()[1], 1), x.shape()[1]});
}

/// Returns the shape of the labels for these logits.
Shape shape_of_labels(const Tensor& logits) {
  Shape shape = logits.shape();
  shape.erase(1);
  return shape;
}

void check_logits(const char* op, const Tensor& logits, const Tensor& target,
                  const Tensor& weight) {
  ops::check_floating(op, logits);
  ops::check_device(op, logits, target);
  if (logits.dim() < 2)
    throw ShapeError(
        str(op, ": expected logits [n, classes] or [n, classes, d1, …], got ", logits.shape()));
  if (logits.shape()[1] == 0 && shape_of_labels(logits).numel())
    throw ShapeError(str(op, ": expected at least one class, got logits ", logits.shape()));
  if (!weight.defined()) return;
  ops::check_device(op, logits, weight);
  if (weight.shape() != Shape{logits.shape()[1]})
    throw ShapeError(str(op, ": expected weight [", logits.shape()[1], "], got ", weight.shape()));
  if (weight.dtype() != logits.dtype())
    throw DTypeError(str(op, ": expected weight to be ", logits.dtype(), " as the logits, got ",
                         weight.dtype()));
}
void check_labels(const char* op, const Tensor& logits, const Tensor& labels) {
  if (labels.dtype() != DType::int64)
    throw DTypeError(str(op, ": expected int64 labels, got ", labels.dtype(), " ", labels.shape()));
  const Shape expected = shape_of_labels(logits);
  if (labels.shape() != expected)
    throw ShapeError(str(op, ": expected labels ", expected, " for logits ", logits.shape(),
                         ", got ", labels.shape()));
}

/// Cross entropy with probabilities as targets: one loss per row.
Tensor soft_rows(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  const Tensor x = as_rows(logits);
  Tensor t = as_rows(target);
  if (o.label_smoothing > 0)
    t = add(mul(t, 1 - o.label_smoothing), o.label_smoothing / static_cast<double>(x.shape()[1]));
  if (o.weight.defined()) t = t * o.weight.detach();
  return neg(sum(t * log_softmax(x), {1}));
}

/// Returns the loss with the given reduction and, if `wants_total`, the divisor of the mean.
RowLoss cross_entropy_of(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o,
                         bool wants_total) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return cross_entropy_of(full(logits), full(target), o, wants_total);
  }
  check_logits("cross_entropy", logits, target, o.weight);
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    throw ArgumentError(
        str("cross_entropy: expected 0 <= label_smoothing <= 1, got ", o.label_smoothing));
  if (is_floating(target.dtype()) && target.shape() == logits.shape()) {
    ops::check_dtype("cross_entropy", logits, target);
    const Tensor each = soft_rows(logits, target, o);
    const Tensor total = wants_total ? number(static_cast<double>(each.numel()),
                                              statistics_type(each.dtype()), each.device())
                                     : Tensor();
    if (o.reduction == Reduction::none) return {each.reshape(shape_of_labels(logits)), total};
    return {o.reduction == Reduction::mean ? mean(each) : sum(each), total};
  }
  check_labels("cross_entropy", logits, target);
  const Tensor labels = target.dim() == 1 ? target : target.contiguous().reshape({target.numel()});
  RowLoss result = cross_entropy_rows(as_rows(logits), labels, o, wants_total);
  if (o.reduction == Reduction::none && target.dim() != 1)
    result.loss = result.loss.reshape(target.shape());
  return result;
}

/// Returns the loss of each label, and its weight, which is 0 if the label is ignored.
RowLoss nll_each(const Tensor& x, const Tensor& labels, const NllOptions& o) {
  check_logits("nll_loss", x, labels, o.weight);
  check_labels("nll_loss", x, labels);
  const Tensor rows = as_rows(x), list = labels.contiguous().reshape({labels.numel()});
  const Tensor ignored = eq(list, o.ignore_index), zero = number(0, x.dtype(), x.device());
  const Tensor valid = where(ignored, number(0, DType::int64, x.device()), list);
  const Tensor weights = o.weight.defined()
                             ? o.weight.detach()
                             : ones({x.shape()[1]}, {.device = x.device(), .dtype = x.dtype()});
  // pick_rows detects a label outside the classes
  const Tensor weight = where(ignored, zero, ops::pick_rows("nll_loss", weights, valid));
  const Tensor place =
      add(mul(arange(rows.shape()[0], {.device = x.device()}), x.shape()[1]), valid);
  const Tensor picked = list.numel()
                            ? ops::pick_rows("nll_loss", rows.reshape({rows.numel()}), place)
                            : rows.reshape({0});
  return {where(ignored, zero, neg(picked * weight)), weight};
}

/// Returns da = 2 scale (a - b) dy. Recorded.
Tensor mse_backward(const Tensor& a, const Tensor& b, const Tensor& dy, double scale) {
  Tensor da = make_tensor(a.shape(), a.dtype(), a.device());
  if (a.numel())
    launch("mse_backward", a.device(), &KernelTable::mse_backward,
           MseBackwardArgs{a.dtype(), a.id()->data(), b.id()->data(), dy.id()->data(),
                           da.id()->data(), scale, a.numel()});
  if (!needs_grad({a, b, dy})) return da;
  return record("mse_backward", {a, b, dy}, da,
                [sa = SavedTensor(a), sb = SavedTensor(b), sd = SavedTensor(dy), scale](
                    const Tensor& g, Needs needs) -> Grads {
                  const Tensor wide = mul(g * sd.get(), 2 * scale);
                  return {needs[0] ? wide : Tensor(), needs[1] ? neg(wide) : Tensor(),
                          needs[2] ? mul(sum(g * (sa.get() - sb.get())), 2 * scale) : Tensor()};
                });
}

}  // namespace

Tensor LossSum::mean() const { return braid::sum(sum) / braid::sum(count); }

Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options) {
  return cross_entropy_of(logits, target, options, false).loss;
}

LossSum cross_entropy(SumAndCount, const Tensor& logits, const Tensor& target,
                      const CrossEntropyOptions& options) {
  CrossEntropyOptions o = options;
  o.reduction = Reduction::sum;
  const RowLoss all = cross_entropy_of(logits, target, o, true);
  return {all.loss, all.total};
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& labels, const NllOptions& options) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return nll_loss(full(log_probabilities), labels, options);
  }
  const RowLoss each = nll_each(log_probabilities, labels, options);
  if (options.reduction == Reduction::none) return each.loss.reshape(labels.shape());
  if (options.reduction == Reduction::sum) return sum(each.loss);
  const DType t = each.loss.dtype(),
              w = statistics_type(t);  // the mean may be a number that the sum is not
  return (sum(each.loss.to(w)) / sum(each.total.to(w))).to(t);
}

LossSum nll_loss(SumAndCount, const Tensor& log_probabilities, const Tensor& labels,
                 const NllOptions& options) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return nll_loss(sum_and_count, full(log_probabilities), labels, options);
  }
  const RowLoss each = nll_each(log_probabilities, labels, options);
  return {sum(each.loss), sum(each.total.to(statistics_type(each.total.dtype())))};
}

Tensor mse_loss(const Tensor& a, const Tensor& b, Reduction reduction) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return mse_loss(full(a), full(b), reduction);
  }
  ops::check_floating("mse_loss", a);
  ops::check_device("mse_loss", a, b);
  ops::check_dtype("mse_loss", a, b);
  if (a.shape() != b.shape())
    throw ShapeError(str("mse_loss: expected equal shapes, got ", a.shape(), " and ", b.shape()));
  if (reduction == Reduction::none) return square(a - b);
  const Tensor x = a.contiguous(), y = b.contiguous();
  Tensor loss = make_tensor({}, x.dtype(), x.device());
  const double scale = reduction == Reduction::sum ? 1 : 1 / static_cast<double>(x.numel());
  if (x.numel() == 0)
    loss =
        ops::filled({}, reduction == Reduction::sum ? 0 : std::numeric_limits<double>::quiet_NaN(),
                    x.dtype(), x.device());
  else
    launch("mse_loss", x.device(), &KernelTable::mse,
           MseArgs{x.dtype(), x.id()->data(), y.id()->data(), loss.id()->data(), scale, x.numel()});
  if (!needs_grad({x, y})) return loss;
  return record(
      "mse_loss", {x, y}, loss,
      [sx = SavedTensor(x), sy = SavedTensor(y), scale](const Tensor& dy, Needs needs) -> Grads {
        Tensor dx = mse_backward(sx.get(), sy.get(), dy, scale);
        return {needs[0] ? dx : Tensor(), needs[1] ? neg(dx) : Tensor()};
      });
}

LossSum mse_loss(SumAndCount, const Tensor& a, const Tensor& b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return mse_loss(sum_and_count, full(a), full(b));
  }
  Tensor loss = mse_loss(a, b, Reduction::sum);
  return {loss, number(static_cast<double>(a.numel()), statistics_type(a.dtype()), a.device())};
}

BRAID_FIELDS_DEFINED(LossSum, sum, count)

}  // namespace braid
