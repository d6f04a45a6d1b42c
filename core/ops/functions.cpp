// Less common functions of one tensor, each with its derivative.
#include <cmath>

#include <braid/core/ops/elementwise.hpp>

#include "map.hpp"

namespace braid {
namespace {

constexpr double kLog2 = 0.693147180559945309417, kLog10 = 2.30258509299404568402,
                 kTwoOverRootPi = 1.12837916709551257390;

/// Computes a floating-point function. Its gradient is derivative(dy, x), made of recorded ops.
template <class F> Tensor from_input(const char* op, UnaryOp kind, const Tensor& a, F derivative) {
  const Tensor x = ops::as_floating(a);
  Tensor y = ops::unary(op, kind, x);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y, [x = SavedTensor(x), derivative](const Tensor& dy) -> Grads {
    return {derivative(dy, x.get())};
  });
}
/// The same, but the gradient is derivative(dy, y).
template <class F> Tensor from_output(const char* op, UnaryOp kind, const Tensor& a, F derivative) {
  const Tensor x = ops::as_floating(a);
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
