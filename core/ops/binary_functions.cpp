// Less common functions of two tensors, and functions composed of products and sums.
#include <cmath>

#include <braid/core/ops/elementwise.hpp>

#include "map.hpp"

namespace braid {
namespace {

using T = const Tensor&;

/// Throws DTypeError if both operands are bool, which has no powers and no remainders.
void check_numbers(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::bool_ && b.dtype() == DType::bool_)
    throw DTypeError(str(op, ": expected numbers, got bool"));
}

/// Computes a op b. da(dy, a, b) and db(dy, a, b) return the gradients before these are summed over
/// broadcast dims.
template <class A, class B>
Tensor of_two(const char* op, BinaryOp kind, const ops::Pair& p, A da, B db) {
  Tensor y = ops::binary(op, kind, *p.a, *p.b);
  if (!needs_grad({*p.a, *p.b})) return y;
  return record(op, {*p.a, *p.b}, y,
                [sa = SavedTensor(*p.a), sb = SavedTensor(*p.b), da, db](const Tensor& dy,
                                                                         Needs needs) -> Grads {
                  const Tensor a = sa.get(), b = sb.get();
                  return {needs[0] ? ops::sum_to(da(dy, a, b), a.shape()) : Tensor(),
                          needs[1] ? ops::sum_to(db(dy, a, b), b.shape()) : Tensor()};
                });
}
/// Computes a op number. The gradient of a is dy, or 0 with `step` (for a step function).
Tensor with_number(const char* op, BinaryOp kind, const Tensor& a, const Scalar& b,
                   bool step = false) {
  const Tensor x = ops::for_scalar(a, b);
  Tensor y = ops::with_scalar(op, kind, x, b);
  if (!needs_grad({x})) return y;
  return record(op, {x}, y,
                [step](const Tensor& dy) -> Grads { return {step ? ops::zeros_as(dy) : dy}; });
}

/// Calls f(dtype), which consists of several ops. 16-bit types are computed in float32 and rounded
/// once, at the end.
template <class F> Tensor rounded_once(DType dtype, F f) {
  return is_floating(dtype) && size_of(dtype) == 2 ? f(DType::float32).to(dtype) : f(dtype);
}

const auto kPasses = [](T dy, T, T) { return dy; };
/// Returns g, but 0 where the mask is true, in the shape before sum_to().
Tensor zero_where(const Tensor& mask, const Tensor& g) { return where(mask, 0.0, g); }

/// Linear interpolation. x + w d is exact at w = 0, y - d (1 - w) at w = 1, so each is used for the
/// w that are closer to it. The gradient is the same for both.
Tensor weighted(const Tensor& x, const Tensor& y, const Tensor& w) {
  const Tensor mean = [&] {
    const NoGrad guard;
    const Tensor d = y - x;
    return where(lt(abs(w), 0.5), x + w * d, y - d * sub(1, w));
  }();
  if (!needs_grad({x, y, w})) return mean;
  return record("lerp", {x, y, w}, mean,
                [sx = SavedTensor(x), sy = SavedTensor(y), sw = SavedTensor(w)](
                    const Tensor& dy, Needs needs) -> Grads {
                  const Tensor from = sx.get(), to = sy.get(), by = sw.get();
                  return {needs[0] ? ops::sum_to(dy * sub(1, by), from.shape()) : Tensor(),
                          needs[1] ? ops::sum_to(dy * by, to.shape()) : Tensor(),
                          needs[2] ? ops::sum_to(dy * (to - from), by.shape()) : Tensor()};
                });
}

}  // namespace

Tensor pow(const Tensor& a, const Tensor& b) {
  const ops::Pair p("pow", a, b);
  check_numbers("pow", a, b);
  return of_two(
      "pow", BinaryOp::pow, p,
      [](T dy, T x, T e) { return zero_where(eq(e, 0), dy * e * pow(x, sub(e, 1))); },
      [](T dy, T x, T e) {
        return zero_where(logical_and(eq(x, 0), ge(e, 0)), dy * pow(x, e) * log(x));
      });
}

Tensor pow(const Scalar& base, const Tensor& b) {
  const Tensor x = ops::for_scalar(b, base);
  if (!is_floating(x.dtype())) return pow(ops::filled({}, base, x.dtype(), x.device()), x);
  const double a = base.to_double();
  Tensor y = ops::with_scalar("pow", BinaryOp::pow, x, a, true);
  if (!needs_grad({x})) return y;
  return record("pow", {x}, y,
                [x = SavedTensor(x), y = SavedTensor::output(y), a](const Tensor& dy) -> Grads {
                  if (a == 0) return {zero_where(ge(x.get(), 0), mul(dy * y.get(), -INFINITY))};
                  return {mul(dy * y.get(), std::log(a))};
                });
}

Tensor atan2(const Tensor& a, const Tensor& b) {
  const ops::Pair p("atan2", a, b, true);
  return of_two(
      "atan2", BinaryOp::atan2, p,
      [](T dy, T y, T x) {
        const Tensor r = add(square(y), square(x));
        return zero_where(eq(r, 0), dy * x / r);
      },
      [](T dy, T y, T x) {
        const Tensor r = add(square(y), square(x));
        return zero_where(eq(r, 0), neg(dy * y / r));
      });
}

Tensor fmod(const Tensor& a, const Tensor& b) {
  const ops::Pair p("fmod", a, b);
  check_numbers("fmod", a, b);
  return of_two("fmod", BinaryOp::fmod, p, kPasses,
                [](T dy, T x, T m) { return neg(dy * trunc(x / m)); });
}
Tensor fmod(const Tensor& a, const Scalar& b) {
  return with_number("fmod", BinaryOp::fmod, ops::numbers("fmod", a), b);
}

Tensor remainder(const Tensor& a, const Tensor& b) {
  const ops::Pair p("remainder", a, b);
  check_numbers("remainder", a, b);
  return of_two("remainder", BinaryOp::remainder, p, kPasses,
                [](T dy, T x, T m) { return neg(dy * floor_divide(x, m)); });
}
Tensor remainder(const Tensor& a, const Scalar& b) {
  return with_number("remainder", BinaryOp::remainder, ops::numbers("remainder", a), b);
}

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  const ops::Pair p("floor_divide", a, b);
  check_numbers("floor_divide", a, b);
  const auto zero = [](T dy, T, T) { return ops::zeros_as(dy); };
  return of_two("floor_divide", BinaryOp::floor_divide, p, zero, zero);
}
Tensor floor_divide(const Tensor& a, const Scalar& b) {
  return with_number("floor_divide", BinaryOp::floor_divide, ops::numbers("floor_divide", a), b,
                     true);
}

Tensor xlogy(const Tensor& a, const Tensor& b) {
  ops::check_together("xlogy", {&a, &b});
  const ops::Pair p("xlogy", a, b, true);
  Tensor y;
  {
    const NoGrad guard;
    y = rounded_once(p.a->dtype(), [&](DType as) {
      const Tensor x = p.a->to(as), z = p.b->to(as);
      return where(logical_and(eq(x, 0), eq(z, z)), 0.0, x * log(z));
    });
  }
  if (!needs_grad({*p.a, *p.b})) return y;
  return record(
      "xlogy", {*p.a, *p.b}, y,
      [sa = SavedTensor(*p.a), sb = SavedTensor(*p.b)](const Tensor& dy, Needs needs) -> Grads {
        const Tensor x = sa.get(), z = sb.get();
        return {needs[0] ? ops::sum_to(zero_where(logical_and(eq(x, 0), le(z, 0)), dy * log(z)),
                                       x.shape())
                         : Tensor(),
                needs[1] ? ops::sum_to(dy * x / z, z.shape()) : Tensor()};
      });
}

Tensor logical_and(const Tensor& a, const Tensor& b) {
  ops::check_together("logical_and", {&a, &b});
  return ops::binary("logical_and", BinaryOp::mul, a.to(DType::bool_), b.to(DType::bool_));
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  ops::check_together("logical_or", {&a, &b});
  return ops::binary("logical_or", BinaryOp::add, a.to(DType::bool_), b.to(DType::bool_));
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  ops::check_together("logical_xor", {&a, &b});
  return ops::binary("logical_xor", BinaryOp::ne, a.to(DType::bool_), b.to(DType::bool_));
}

Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  ops::check_together("lerp", {&a, &b});
  ops::check_floating("lerp", a);
  ops::check_floating("lerp", b);
  return rounded_once(promote(a.dtype(), b.dtype()), [&](DType as) {
    const Tensor x = a.to(as), y = b.to(as), d = y - x;
    return std::fabs(weight) < 0.5 ? add(x, d, weight) : sub(y, d, 1 - weight);
  });
}
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  ops::check_together("lerp", {&a, &b, &weight});
  for (const Tensor* t : {&a, &b, &weight}) ops::check_floating("lerp", *t);
  return rounded_once(promote(promote(a.dtype(), b.dtype()), weight.dtype()),
                      [&](DType as) { return weighted(a.to(as), b.to(as), weight.to(as)); });
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
  ops::check_together("addcmul", {&x, &a, &b});
  const DType dtype = promote(x.dtype(), promote(a.dtype(), b.dtype()));
  if (!is_floating(dtype) && !value.is_whole())
    throw DTypeError(str("addcmul: expected a whole value for ", dtype, ", got ", value));
  return rounded_once(dtype, [&](DType as) { return add(x.to(as), a.to(as) * b.to(as), value); });
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
  ops::check_together("addcdiv", {&x, &a, &b});
  const DType dtype = promote(x.dtype(), promote(a.dtype(), b.dtype()));
  return rounded_once(dtype, [&](DType as) { return add(x.to(as), a.to(as) / b.to(as), value); });
}

}  // namespace braid
