// Elementwise functions of one tensor, each with its derivative.
#include <braid/core/ops/elementwise.hpp>

#include "images.hpp"
#include "map.hpp"

namespace braid {
namespace ops {

Tensor unary(const char* op, UnaryOp kind, const Tensor& x, double alpha) {
  const TensorImpl& t = detail::defined(x.impl());
  Tensor y = ops::make_like(t, t.dtype);
  if (t.numel == 0) return y;
  UnaryArgs args;
  args.op = kind;
  args.dtype = t.dtype;
  args.out = y.id()->data();
  args.x = t.data();
  args.alpha = alpha;
  fill_loop(args.loop, t.shape, {y.id(), &t});
  launch(op, t.device, &KernelTable::unary, args);
  return y;
}

const Tensor& numbers(const char* op, const Tensor& x) {
  if (x.dtype() == DType::bool_) throw DTypeError(str(op, ": expected numbers, got bool"));
  return x;
}

}  // namespace ops

using ops::filled, ops::numbers, ops::unary;

Tensor relu(const Tensor& x) {
  Tensor y = unary("relu", UnaryOp::relu, numbers("relu", x));
  if (!needs_grad({x})) return y;
  return record("relu", {x}, y, [y = SavedTensor::output(y)](const Tensor& dy) -> Grads {
    return {ops::relu_backward(y.get(), dy)};
  });
}

Tensor neg(const Tensor& x) {
  Tensor y = unary("neg", UnaryOp::neg, numbers("neg", x));
  if (!needs_grad({x})) return y;
  return record("neg", {x}, y, [](const Tensor& dy) -> Grads { return {neg(dy)}; });
}

Tensor abs(const Tensor& x) {
  Tensor y = unary("abs", UnaryOp::abs, numbers("abs", x));
  if (!needs_grad({x})) return y;
  return record("abs", {x}, y, [x = SavedTensor(x)](const Tensor& dy) -> Grads {
    return {dy * sign(x.get().detach())};
  });
}

Tensor sign(const Tensor& x) {
  Tensor y = unary("sign", UnaryOp::sign, numbers("sign", x));
  if (!needs_grad({x})) return y;
  return record("sign", {x}, y, [](const Tensor& dy) -> Grads { return {ops::zeros_as(dy)}; });
}

Tensor square(const Tensor& x) {
  Tensor y = unary("square", UnaryOp::square, numbers("square", x));
  if (!needs_grad({x})) return y;
  return record("square", {x}, y,
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {mul(dy * x.get(), 2)}; });
}

Tensor exp(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("exp", UnaryOp::exp, x);
  if (!needs_grad({x})) return y;
  return record("exp", {x}, y,
                [y = SavedTensor::output(y)](const Tensor& dy) -> Grads { return {dy * y.get()}; });
}

Tensor log(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("log", UnaryOp::log, x);
  if (!needs_grad({x})) return y;
  return record("log", {x}, y,
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {dy / x.get()}; });
}

Tensor sqrt(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("sqrt", UnaryOp::sqrt, x);
  if (!needs_grad({x})) return y;
  return record("sqrt", {x}, y, [y = SavedTensor::output(y)](const Tensor& dy) -> Grads {
    return {mul(dy, 0.5) / y.get()};
  });
}

Tensor rsqrt(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("rsqrt", UnaryOp::rsqrt, x);
  if (!needs_grad({x})) return y;
  return record("rsqrt", {x}, y, [y = SavedTensor::output(y)](const Tensor& dy) -> Grads {
    const Tensor r = y.get();
    return {mul(dy, -0.5) * r * square(r)};
  });
}

Tensor reciprocal(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("reciprocal", UnaryOp::reciprocal, x);
  if (!needs_grad({x})) return y;
  return record("reciprocal", {x}, y, [y = SavedTensor::output(y)](const Tensor& dy) -> Grads {
    return {neg(dy * square(y.get()))};
  });
}

Tensor pow(const Tensor& a, const Scalar& power) {
  if (!is_floating(a.dtype()) && !power.is_floating()) {
    if (power.to_int64() < 0)
      throw ArgumentError(str("pow: expected an exponent >= 0 for ", a.dtype(), ", got ", power));
    // in int64, which can hold the exponent, and which wraps around as narrower types do
    const DType dtype = promote(a.dtype(), power);
    return pow(numbers("pow", a.to(dtype)).to(DType::int64),
               filled({}, power, DType::int64, a.device()))
        .to(dtype);
  }
  const double exponent = power.to_double();
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("pow", UnaryOp::pow_scalar, x, exponent);
  if (!needs_grad({x})) return y;
  return record("pow", {x}, y, [x = SavedTensor(x), exponent](const Tensor& dy) -> Grads {
    if (exponent == 0) return {ops::zeros_as(dy)};  // not 0 * x^-1, which is NaN at 0
    return {mul(dy * pow(x.get(), exponent - 1), exponent)};
  });
}

Tensor tanh(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("tanh", UnaryOp::tanh, x);
  if (!needs_grad({x})) return y;
  return record("tanh", {x}, y, [y = SavedTensor::output(y)](const Tensor& dy) -> Grads {
    return {ops::tanh_backward(y.get(), dy)};
  });
}

Tensor sigmoid(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("sigmoid", UnaryOp::sigmoid, x);
  if (!needs_grad({x})) return y;
  return record("sigmoid", {x}, y, [y = SavedTensor::output(y)](const Tensor& dy) -> Grads {
    return {ops::sigmoid_backward(y.get(), dy)};
  });
}

Tensor sin(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("sin", UnaryOp::sin, x);
  if (!needs_grad({x})) return y;
  return record("sin", {x}, y,
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {dy * cos(x.get())}; });
}

Tensor cos(const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = unary("cos", UnaryOp::cos, x);
  if (!needs_grad({x})) return y;
  return record("cos", {x}, y, [x = SavedTensor(x)](const Tensor& dy) -> Grads {
    return {neg(dy * sin(x.get()))};
  });
}

}  // namespace braid
