// Mathematical functions of two tensors: powers, angles, remainders, logarithms.
#include <cmath>
#include <type_traits>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/binary.hpp>
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

/// The same for a tensor and a number. A bool tensor with a number that is no bool is converted.
const Tensor& numbers_with(const char* op, const Tensor& a, const Scalar& b) {
  if (a.dtype() == DType::bool_ && promote(a.dtype(), b) != DType::bool_) return a;
  return ops::numbers(op, a);
}

/// Computes a op b. da and db return the gradients before these are summed over broadcast dims:
/// da(dy, a, b), or da(dy) if it needs no operands, which are saved only where a gradient does.
template <class A, class B>
Tensor of_two(const char* op, BinaryOp kind, const ops::Pair& p, A da, B db) {
  Tensor y = ops::binary(op, kind, *p.a, *p.b);
  if (!needs_grad({*p.a, *p.b})) return y;
  const bool saves = (p.a->requires_grad() && !std::is_invocable_v<A, T>) ||
                     (p.b->requires_grad() && !std::is_invocable_v<B, T>);
  return record(op, {*p.a, *p.b}, y,
                [sa = saves ? SavedTensor(*p.a) : SavedTensor(),
                 sb = saves ? SavedTensor(*p.b) : SavedTensor(), of_a = p.a->shape(),
                 of_b = p.b->shape(), da, db](const Tensor& dy, Needs needs) -> Grads {
                  const auto of = [&](const auto& slope) {
                    if constexpr (std::is_invocable_v<decltype(slope), T>) return slope(dy);
                    else return slope(dy, sa.get(), sb.get());
                  };
                  return {needs[0] ? ops::sum_to(of(da), of_a) : Tensor(),
                          needs[1] ? ops::sum_to(of(db), of_b) : Tensor()};
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

const auto kPasses = [](T dy) { return dy; };
/// Returns g, but 0 where the mask is true, in the shape before sum_to().
Tensor zero_where(const Tensor& mask, const Tensor& g) { return where(mask, 0.0, g); }

}  // namespace

Tensor pow(const Tensor& a, const Tensor& b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return pow(full(a), full(b));
  }
  const ops::Pair p("pow", a, b);
  check_numbers("pow", a, b);
  return of_two(
      "pow", BinaryOp::pow, p,
      [](T dy, T x, T e) {
        // x^-1 where e is 0 would be infinite at x = 0, and the gradient of this gradient NaN
        const Tensor none = eq(e, 0);
        return zero_where(none, dy * e * pow(x, sub(where(none, 1.0, e), 1)));
      },
      [](T dy, T x, T e) {
        return zero_where(logical_and(eq(x, 0), ge(e, 0)), dy * pow(x, e) * log(x));
      });
}

Tensor pow(const Scalar& base, const Tensor& b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return pow(base, full(b));
  }
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
  return with_number("fmod", BinaryOp::fmod, numbers_with("fmod", a, b), b);
}

Tensor remainder(const Tensor& a, const Tensor& b) {
  const ops::Pair p("remainder", a, b);
  check_numbers("remainder", a, b);
  return of_two("remainder", BinaryOp::remainder, p, kPasses,
                [](T dy, T x, T m) { return neg(dy * floor_divide(x, m)); });
}
Tensor remainder(const Tensor& a, const Scalar& b) {
  return with_number("remainder", BinaryOp::remainder, numbers_with("remainder", a, b), b);
}
Tensor remainder(const Scalar& a, const Tensor& b) {
  const Tensor x = ops::for_scalar(numbers_with("remainder", b, a), a);
  return remainder(ops::filled({}, a, x.dtype(), x.device()), x);
}

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  const ops::Pair p("floor_divide", a, b);
  check_numbers("floor_divide", a, b);
  const auto zero = [](T dy) { return ops::zeros_as(dy); };
  return of_two("floor_divide", BinaryOp::floor_divide, p, zero, zero);
}
Tensor floor_divide(const Tensor& a, const Scalar& b) {
  return with_number("floor_divide", BinaryOp::floor_divide, numbers_with("floor_divide", a, b), b,
                     true);
}

Tensor xlogy(const Tensor& a, const Tensor& b) {
  ops::check_together("xlogy", {&a, &b});
  const ops::Pair p("xlogy", a, b, true);
  Tensor y;
  {
    const NoGrad guard;
    y = ops::rounded_once(p.a->dtype(), [&](DType as) {
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

Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
Tensor operator%(const Tensor& a, const Scalar& b) { return remainder(a, b); }
Tensor operator%(const Scalar& a, const Tensor& b) { return remainder(a, b); }

}  // namespace braid
