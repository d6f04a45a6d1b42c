// Fused losses: one pass forward, one backward; the backward is an op with a gradient made of plain ops.
#include <limits>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// dx = (softmax(x) - onehot(labels)) * scale * dy, from the rows' log-sum-exp. Recorded.
Tensor cross_entropy_backward(const Tensor& x, const Tensor& labels, const Tensor& lse, const Tensor& dy, double scale) {
  Tensor dx = make_tensor(x.shape(), x.dtype(), x.device());
  if (x.numel())
    launch("cross_entropy_backward", x.device(), &KernelTable::cross_entropy_backward,
           CrossEntropyBackwardArgs{x.dtype(), x.id()->data(), static_cast<const std::int64_t*>(labels.id()->data()), labels.strides()[0], lse.id()->data(),
                                    dy.id()->data(), dx.id()->data(), scale, x.shape()[0], x.shape()[1]});
  if (!needs_grad({x, dy})) return dx;
  auto gradient = [sx = SavedTensor(x), sd = SavedTensor(dy), sl = SavedTensor(labels), scale](const Tensor& g, Needs needs) -> Grads {
    const Tensor logits = sx.get(), p = softmax(logits);
    Tensor dlogits, ddy;
    if (needs[0]) dlogits = ops::softmax_backward(p, mul(g * sd.get(), scale), false);
    if (needs[1]) {
      const Tensor columns = arange(logits.shape()[1], {.device = logits.device()});
      const Tensor onehot = eq(sl.get().reshape({-1, 1}), columns).to(g.dtype());
      ddy = mul(sum(g * (p - onehot)), scale);
    }
    return {dlogits, ddy};
  };
  return record("cross_entropy_backward", {x, dy}, dx, std::move(gradient));
}

/// da = 2 scale (a - b) dy. Recorded.
Tensor mse_backward(const Tensor& a, const Tensor& b, const Tensor& dy, double scale) {
  Tensor da = make_tensor(a.shape(), a.dtype(), a.device());
  if (a.numel())
    launch("mse_backward", a.device(), &KernelTable::mse_backward,
           MseBackwardArgs{a.dtype(), a.id()->data(), b.id()->data(), dy.id()->data(), da.id()->data(), scale, a.numel()});
  if (!needs_grad({a, b, dy})) return da;
  return record("mse_backward", {a, b, dy}, da, [sa = SavedTensor(a), sb = SavedTensor(b), sd = SavedTensor(dy), scale](const Tensor& g, Needs needs) -> Grads {
    const Tensor wide = mul(g * sd.get(), 2 * scale);
    return {needs[0] ? wide : Tensor(), needs[1] ? neg(wide) : Tensor(), needs[2] ? mul(sum(g * (sa.get() - sb.get())), 2 * scale) : Tensor()};
  });
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, Reduction reduction) {
  ops::check_floating("cross_entropy", logits);
  ops::check_device("cross_entropy", logits, labels);
  if (logits.dim() != 2) throw ShapeError(str("cross_entropy: expected logits [n, classes], got ", logits.shape()));
  if (labels.dtype() != DType::int64) throw DTypeError(str("cross_entropy: expected int64 labels, got ", labels.dtype()));
  if (labels.shape() != Shape{logits.shape()[0]})
    throw ShapeError(str("cross_entropy: expected labels [", logits.shape()[0], "] for logits ", logits.shape(), ", got ", labels.shape()));
  const std::int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  if (rows && !classes) throw ShapeError(str("cross_entropy: expected at least one class, got logits ", logits.shape()));
  const Tensor x = logits.contiguous();
  Tensor loss = make_tensor({}, x.dtype(), x.device()), lse = make_tensor({rows}, size_of(x.dtype()) == 2 ? DType::float32 : x.dtype(), x.device());
  const double scale = reduction == Reduction::sum ? 1 : 1 / static_cast<double>(rows);
  if (rows == 0) {
    loss = ops::filled({}, reduction == Reduction::sum ? 0 : std::numeric_limits<double>::quiet_NaN(), x.dtype(), x.device());
  } else {
    launch("cross_entropy", x.device(), &KernelTable::cross_entropy,
           CrossEntropyArgs{x.dtype(), x.id()->data(), static_cast<const std::int64_t*>(labels.id()->data()), labels.strides()[0], lse.id()->data(),
                            loss.id()->data(), scale, rows, classes});
  }
  if (!needs_grad({x})) return loss;
  return record("cross_entropy", {x}, loss, [sx = SavedTensor(x), sl = SavedTensor(labels), lse, scale](const Tensor& dy) -> Grads {
    return {cross_entropy_backward(sx.get(), sl.get(), lse, dy, scale)};
  });
}

Tensor mse_loss(const Tensor& a, const Tensor& b, Reduction reduction) {
  ops::check_floating("mse_loss", a);
  ops::check_device("mse_loss", a, b);
  ops::check_dtype("mse_loss", a, b);
  if (a.shape() != b.shape()) throw ShapeError(str("mse_loss: expected equal shapes, got ", a.shape(), " and ", b.shape()));
  const Tensor x = a.contiguous(), y = b.contiguous();
  Tensor loss = make_tensor({}, x.dtype(), x.device());
  const double scale = reduction == Reduction::sum ? 1 : 1 / static_cast<double>(x.numel());
  if (x.numel() == 0) loss = ops::filled({}, reduction == Reduction::sum ? 0 : std::numeric_limits<double>::quiet_NaN(), x.dtype(), x.device());
  else launch("mse_loss", x.device(), &KernelTable::mse, MseArgs{x.dtype(), x.id()->data(), y.id()->data(), loss.id()->data(), scale, x.numel()});
  if (!needs_grad({x, y})) return loss;
  return record("mse_loss", {x, y}, loss, [sx = SavedTensor(x), sy = SavedTensor(y), scale](const Tensor& dy, Needs needs) -> Grads {
    Tensor dx = mse_backward(sx.get(), sy.get(), dy, scale);
    return {needs[0] ? dx : Tensor(), needs[1] ? neg(dx) : Tensor()};
  });
}

}  // namespace braid
