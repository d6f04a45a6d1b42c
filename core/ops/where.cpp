// Elements chosen by a mask (where, masked_fill), and elements limited by bounds (clamp).
#include <braid/core/ops/where.hpp>

#include <algorithm>
#include <cmath>

#include <braid/core/ops/elementwise.hpp>

#include "activation.hpp"
#include "map.hpp"
#include "where.hpp"

namespace braid {
namespace ops {

void check_mask(const char* op, const Tensor& x, const Tensor& mask) {
  check_together(op, {&x, &mask});
  if (mask.dtype() != DType::bool_)
    throw DTypeError(str(op, ": expected a bool mask, got ", mask.dtype()));
}

Bounds clamp_bounds(const char* op, const Tensor& x, const std::optional<Scalar>& min,
                    const std::optional<Scalar>& max) {
  (void)numbers(op, x);
  if (!min && !max) throw ArgumentError(str(op, ": expected min, max or both, got neither"));
  if (is_floating(x.dtype())) {
    Bounds b{min ? min->to_double() : -INFINITY, max ? max->to_double() : INFINITY};
    if (std::isnan(b.low) || std::isnan(b.high)) b.low = b.high = NAN;
    return b;
  }
  const std::int64_t least = x.dtype() == DType::uint8   ? 0
                             : x.dtype() == DType::int32 ? INT32_MIN
                                                         : INT64_MIN;
  const std::int64_t most = x.dtype() == DType::uint8   ? 255
                            : x.dtype() == DType::int32 ? INT32_MAX
                                                        : INT64_MAX;
  // the bound is an integer or an infinity
  const auto inside = [&](const std::optional<Scalar>& bound, std::int64_t none) {
    if (!bound) return none;
    if (!bound->is_whole()) return bound->to_double() > 0 ? most : least;
    return std::clamp(bound->to_int64(), least, most);
  };
  Bounds b;
  b.least = inside(min, least);
  b.most = inside(max, most);
  return b;
}

void clamp_integers(const char* op, const Tensor& out, const Tensor& x, Bounds b) {
  scalar_into(op, BinaryOp::maximum, out, x, b.least);
  if (b.most != INT64_MAX) scalar_into(op, BinaryOp::minimum, out, out, b.most);
}

}  // namespace ops

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (condition.device() != a.device() || a.device() != b.device()) [[unlikely]] {
    const Device device = ops::common_device({&condition, &a, &b});
    return where(ops::beside("where", condition, device), ops::beside("where", a, device),
                 ops::beside("where", b, device));
  }
  const ops::Pair p("where", a, b);
  if (condition.dtype() != DType::bool_)
    throw DTypeError(str("where: expected a bool condition, got ", condition.dtype()));
  const Shape shape = broadcast_shapes("where", condition.shape(),
                                       broadcast_shapes("where", p.a->shape(), p.b->shape()));
  Tensor y = make_tensor(shape, p.a->dtype(), a.device());
  if (y.numel()) {
    WhereArgs args;
    args.dtype = y.dtype();
    args.out = y.id()->data();
    args.condition = condition.id()->data();
    args.a = p.a->id()->data();
    args.b = p.b->id()->data();
    ops::fill_loop(args.loop, shape, {y.id(), condition.id(), p.a->id(), p.b->id()});
    launch("where", y.device(), &KernelTable::where, args);
  }
  if (!needs_grad({*p.a, *p.b})) return y;
  return record("where", {*p.a, *p.b}, y,
                [c = SavedTensor(condition), sa = p.a->shape(), sb = p.b->shape()](
                    const Tensor& dy, Needs needs) -> Grads {
                  const Tensor zero = ops::filled({}, 0, dy.dtype(), dy.device()), mask = c.get();
                  return {needs[0] ? ops::sum_to(where(mask, dy, zero), sa) : Tensor(),
                          needs[1] ? ops::sum_to(where(mask, zero, dy), sb) : Tensor()};
                });
}

Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b) {
  const Tensor x = ops::for_scalar(a, b);
  return where(condition, x, ops::filled({}, b, x.dtype(), x.device()));
}
Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b) {
  const Tensor x = ops::for_scalar(b, a);
  return where(condition, ops::filled({}, a, x.dtype(), x.device()), x);
}
Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b) {
  const Device device = condition.device();
  const DType dtype = promote(dtype_of_number(a), dtype_of_number(b));
  return where(condition, ops::filled({}, a, dtype, device), ops::filled({}, b, dtype, device));
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value) {
  ops::check_mask("masked_fill", x, mask);
  return where(
      mask,
      ops::filled({}, ops::fill_value("masked_fill", value, x.dtype()), x.dtype(), x.device()), x);
}
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  ops::check_mask("masked_fill", x, mask);
  ops::check_beside("masked_fill", value, x.device());
  if (value.dim() != 0)
    throw ShapeError(str("masked_fill: expected a value of rank 0, got ", value.shape()));
  if (is_floating(value.dtype()) && !is_floating(x.dtype()))
    throw DTypeError(
        str("masked_fill: expected a value that ", x.dtype(), " can hold, got ", value.dtype()));
  return where(mask, value.to(x.dtype()), x);
}

Tensor clamp(const Tensor& a, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  DType dtype = a.dtype();
  for (const std::optional<Scalar>* bound : {&min, &max})
    if (*bound && !std::isinf((*bound)->to_double()) && dtype != DType::bool_)
      dtype = promote(dtype, **bound);
  const Tensor x = a.to(dtype);
  const ops::Bounds b = ops::clamp_bounds("clamp", x, min, max);
  if (is_floating(dtype)) return ops::clamp_values(x, b.low, b.high);
  Tensor y = make_tensor(x.shape(), dtype, x.device());
  ops::clamp_integers("clamp", y, x, b);
  return y;
}

Tensor clamp(const Tensor& a, const Tensor& min, const Tensor& max) {
  (void)ops::numbers("clamp", a);
  if (!min.defined() && !max.defined())
    throw ArgumentError("clamp: expected min, max or both, got neither");
  const Tensor none;
  const Tensor &low = min.defined() ? min : max, &high = max.defined() ? max : min;
  ops::check_together("clamp", {&a, &low, &high});
  const DType dtype = promote(a.dtype(), promote(low.dtype(), high.dtype()));
  const Device device = ops::common_device({&a, &low, &high});
  const auto at = [&](const Tensor& t) { return ops::beside("clamp", t, device).to(dtype); };
  const Tensor x = at(a), lo = min.defined() ? at(min) : none, hi = max.defined() ? at(max) : none;
  if (!hi.defined()) return maximum(x, lo);
  if (!lo.defined()) return minimum(x, hi);
  const Tensor y = [&] {
    const NoGrad guard;
    return minimum(maximum(x, lo), hi);
  }();
  if (!needs_grad({x, lo, hi})) return y;
  return record(
      "clamp", {x, lo, hi}, y,
      [sx = SavedTensor(x), sl = SavedTensor(lo), sh = SavedTensor(hi)](const Tensor& dy,
                                                                        Needs needs) -> Grads {
        const Tensor v = sx.get(), l = sl.get(), h = sh.get();
        // The gradient goes to the operand that the result comes from. An x equal to one of two
        // different bounds shares it with that bound, half each. If low > high, the result is
        // high. If x is NaN, x gets the gradient.
        const Tensor half = mul(dy, 0.5), apart = lt(l, h), at_low = logical_and(eq(v, l), apart),
                     at_high = logical_and(eq(v, h), apart);
        const auto part = [&](const Tensor& whole, const Tensor& shared, const Tensor& of) {
          return ops::sum_to(where(whole, dy, where(shared, half, 0.0)), of.shape());
        };
        const Tensor to_low = logical_and(lt(v, l), le(l, h)),
                     to_high = logical_or(gt(v, h), gt(l, h));
        const Tensor cut = logical_or(lt(v, l), gt(v, h)), shared = logical_or(at_low, at_high);
        return {needs[0] ? part(logical_not(logical_or(cut, shared)), shared, v) : Tensor(),
                needs[1] ? part(to_low, at_low, l) : Tensor(),
                needs[2] ? part(to_high, at_high, h) : Tensor()};
      });
}

}  // namespace braid
