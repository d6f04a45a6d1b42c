// Elementwise functions of one tensor, each with its derivative.
#include <braid/core/ops/unary.hpp>

#include <cmath>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "autograd/derivative.hpp"
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

namespace {
struct ReluGradient {
  SavedTensor y;
  Grads operator()(const Tensor& dy) const {
    return {autograd::has_derivative() ? dy : ops::relu_backward(y.get(), dy)};
  }
  [[nodiscard]] bool derivative(autograd::Derivative& to) const {
    to.epilogue = Epilogue::relu_backward;
    to.saved = y.get();
    return true;
  }
};
}  // namespace

Tensor relu(const Tensor& x) {
  Tensor y = unary("relu", UnaryOp::relu, numbers("relu", x));
  if (!needs_grad({x})) return y;
  return record("relu", {x}, y, ReluGradient{SavedTensor::output(y)});
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
  const Tensor x = detail::in_full_precision(ops::as_floating(a));
  Tensor y = unary("exp", UnaryOp::exp, x);
  if (!needs_grad({x})) return y;
  return record("exp", {x}, y,
                [y = SavedTensor::output(y)](const Tensor& dy) -> Grads { return {dy * y.get()}; });
}

Tensor log(const Tensor& a) {
  const Tensor x = detail::in_full_precision(ops::as_floating(a));
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
  const Tensor x = detail::in_full_precision(ops::as_floating(a));
  Tensor y = unary("rsqrt", UnaryOp::rsqrt, x);
  if (!needs_grad({x})) return y;
  return record("rsqrt", {x}, y, [y = SavedTensor::output(y)](const Tensor& dy) -> Grads {
    const Tensor r = y.get();
    return {mul(dy, -0.5) * r * square(r)};
  });
}

Tensor reciprocal(const Tensor& a) {
  const Tensor x = detail::in_full_precision(ops::as_floating(a));
  Tensor y = unary("reciprocal", UnaryOp::reciprocal, x);
  if (!needs_grad({x})) return y;
  return record("reciprocal", {x}, y, [y = SavedTensor::output(y)](const Tensor& dy) -> Grads {
    return {neg(dy * square(y.get()))};
  });
}

Tensor pow(const Tensor& a, const Scalar& power) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return pow(full(a), power);
  }
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

namespace {

constexpr double kLog2 = 0.693147180559945309417, kLog10 = 2.30258509299404568402,
                 kTwoOverRootPi = 1.12837916709551257390;

/// Computes a floating-point function. Its gradient is derivative(dy, x), made of recorded ops.
template <class F> Tensor from_input(const char* op, UnaryOp kind, const Tensor& a, F derivative) {
  const Tensor x = detail::in_full_precision(ops::as_floating(a));
  Tensor y = ops::unary(op, kind, x);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [x = SavedTensor(x), derivative](const Tensor& dy) -> Grads {
    return {derivative(dy, x.get())};
  });
}
/// The same, but the gradient is derivative(dy, y).
template <class F> Tensor from_output(const char* op, UnaryOp kind, const Tensor& a, F derivative) {
  const Tensor x = detail::in_full_precision(ops::as_floating(a));
  Tensor y = ops::unary(op, kind, x);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [y = SavedTensor::output(y), derivative](const Tensor& dy) -> Grads {
    return {derivative(dy, y.get())};
  });
}
/// A step function, whose derivative is 0 almost everywhere. Leaves integers as they are.
Tensor step(const char* op, UnaryOp kind, const Tensor& x) {
  if (!is_floating(ops::numbers(op, x).dtype())) return x.clone();
  Tensor y = ops::unary(op, kind, x);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [](const Tensor& dy) -> Grads { return {ops::zeros_as(dy)}; });
}

using T = const Tensor&;

}  // namespace

Tensor exp2(const Tensor& x) {
  return from_output("exp2", UnaryOp::exp2, x, [](T dy, T y) { return mul(dy * y, kLog2); });
}
Tensor expm1(const Tensor& x) {
  return from_output("expm1", UnaryOp::expm1, x, [](T dy, T y) { return dy * add(y, 1); });
}
Tensor log1p(const Tensor& a) {
  return from_input("log1p", UnaryOp::log1p, a, [](T dy, T x) { return dy / add(x, 1); });
}
Tensor log2(const Tensor& a) {
  return from_input("log2", UnaryOp::log2, a, [](T dy, T x) { return dy / mul(x, kLog2); });
}
Tensor log10(const Tensor& a) {
  return from_input("log10", UnaryOp::log10, a, [](T dy, T x) { return dy / mul(x, kLog10); });
}
Tensor tan(const Tensor& x) {
  return from_output("tan", UnaryOp::tan, x, [](T dy, T y) { return dy * add(square(y), 1); });
}
Tensor asin(const Tensor& a) {
  return from_input("asin", UnaryOp::asin, a,
                    [](T dy, T x) { return dy * rsqrt(sub(1, square(x))); });
}
Tensor acos(const Tensor& a) {
  return from_input("acos", UnaryOp::acos, a,
                    [](T dy, T x) { return neg(dy * rsqrt(sub(1, square(x)))); });
}
Tensor atan(const Tensor& a) {
  return from_input("atan", UnaryOp::atan, a, [](T dy, T x) { return dy / add(square(x), 1); });
}
Tensor sinh(const Tensor& a) {
  return from_input("sinh", UnaryOp::sinh, a, [](T dy, T x) { return dy * cosh(x); });
}
Tensor cosh(const Tensor& a) {
  return from_input("cosh", UnaryOp::cosh, a, [](T dy, T x) { return dy * sinh(x); });
}
Tensor asinh(const Tensor& a) {
  return from_input("asinh", UnaryOp::asinh, a,
                    [](T dy, T x) { return dy * rsqrt(add(square(x), 1)); });
}
Tensor acosh(const Tensor& a) {
  return from_input("acosh", UnaryOp::acosh, a,
                    [](T dy, T x) { return dy * rsqrt(add(square(x), -1)); });
}
Tensor atanh(const Tensor& a) {
  return from_input("atanh", UnaryOp::atanh, a, [](T dy, T x) { return dy / sub(1, square(x)); });
}
Tensor erf(const Tensor& a) {
  return from_input("erf", UnaryOp::erf, a,
                    [](T dy, T x) { return mul(dy * exp(neg(square(x))), kTwoOverRootPi); });
}
Tensor erfc(const Tensor& a) {
  return from_input("erfc", UnaryOp::erfc, a,
                    [](T dy, T x) { return mul(dy * exp(neg(square(x))), -kTwoOverRootPi); });
}

Tensor floor(const Tensor& x) { return step("floor", UnaryOp::floor, x); }
Tensor ceil(const Tensor& x) { return step("ceil", UnaryOp::ceil, x); }
Tensor round(const Tensor& x) { return step("round", UnaryOp::round, x); }
Tensor trunc(const Tensor& x) { return step("trunc", UnaryOp::trunc, x); }
Tensor frac(const Tensor& x) {
  ops::check_floating("frac", x);
  return x - trunc(x);
}

Tensor isnan(const Tensor& x) {
  (void)x.dtype();                                  // throws for an undefined tensor
  return ops::binary("isnan", BinaryOp::ne, x, x);  // only NaN differs from itself
}
Tensor isinf(const Tensor& x) {
  if (!is_floating(x.dtype())) return ops::binary("isinf", BinaryOp::ne, x, x);
  return ops::with_scalar("isinf", BinaryOp::eq, ops::unary("isinf", UnaryOp::abs, x), INFINITY);
}
Tensor isfinite(const Tensor& x) {
  if (!is_floating(x.dtype())) return ops::binary("isfinite", BinaryOp::eq, x, x);
  return ops::with_scalar("isfinite", BinaryOp::lt, ops::unary("isfinite", UnaryOp::abs, x),
                          INFINITY);
}
Tensor logical_not(const Tensor& x) {
  (void)x.dtype();
  return ops::with_scalar("logical_not", BinaryOp::eq, x, 0);
}

}  // namespace braid
