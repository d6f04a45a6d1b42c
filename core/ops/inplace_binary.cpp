// In-place arithmetic: a tensor with another tensor or with a number.
#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "change.hpp"
#include "inplace.hpp"
#include "map.hpp"

namespace braid {
namespace ops {
namespace {

/// Computes t = op(t, other), or op(t, number) if other is null. Requires t's dtype and device, and
/// a shape that broadcasts to t's.
void binary_in_place(const char* op, BinaryOp kind, const Tensor& t, const Tensor* other,
                     double number, double alpha = 1) {
  if (t.numel() == 0) return;
  BinaryArgs args;
  args.op = kind;
  args.dtype = t.dtype();
  args.out = t.id()->data();
  args.a = t.id()->data();
  args.b = other != nullptr ? other->id()->data() : nullptr;
  args.scalar = number;
  args.alpha = alpha;
  fill_loop(args.loop, t.shape(), {t.id(), t.id(), other != nullptr ? other->id() : t.id()});
  launch(op, t.device(), &KernelTable::binary, args);
  t.storage()->bump_version();
}

/// Computes t = op(t, number). Throws DTypeError for a fraction if t holds integers, and for a
/// number other than 0 and 1 if t is bool.
void number_in_place(const char* op, BinaryOp kind, const Tensor& t, const Scalar& value) {
  if (!is_floating(t.dtype()) &&
      (!value.is_whole() ||
       (t.dtype() == DType::bool_ && value.to_int64() != 0 && value.to_int64() != 1)))
    throw DTypeError(str(op, ": expected a number that ", t.dtype(), " can hold, got ", value));
  if (t.numel() == 0) return;
  scalar_into(op, kind, t, t, value);
  t.storage()->bump_version();
}

/// Converts `other` to t's dtype. Copies it if it shares t's storage in another layout.
Tensor operand(const char* op, const Tensor& t, const Tensor& other) {
  if ((!is_floating(t.dtype()) && is_floating(other.dtype())) ||
      (t.dtype() == DType::bool_ && other.dtype() != DType::bool_))
    throw DTypeError(
        str(op, ": expected an operand that ", t.dtype(), " can hold, got ", other.dtype()));
  Tensor o = other.to(t.dtype());
  if (overlaps(t, o)) o = o.clone();
  return o;
}

/// Checks the shape of `other` against t's. Returns true if t op other is computed in a wider dtype
/// than t's, and rounded once.
bool is_wider(const char* op, const Tensor& t, const Tensor& other) {
  check_fits(op, t, other);
  return is_floating(t.dtype()) && is_floating(other.dtype()) &&
         promote(t.dtype(), other.dtype()) != t.dtype();
}

/// Computes t = t ± by * other.
const Tensor& add_in_place(const char* op, BinaryOp kind, const Tensor& t, const Tensor& given,
                           const Scalar& by) {
  check_in_place(op, t, given);
  const Tensor other = beside(op, given, t.device());
  if (is_wider(op, t, other))
    return change(op, t, [&](const Tensor& old) {
      return kind == BinaryOp::sub ? sub(old, other, by) : add(old, other, by);
    });
  Tensor o = operand(op, t, other);
  const Scalar factor = add_alpha(op, t.dtype(), by);
  if (!factor.is_exact_double()) o = mul(o, factor);
  const double alpha = factor.is_exact_double() ? factor.to_double() : 1;
  binary_in_place(op, kind, t, &o, 0, alpha);
  if (needs_grad({t, other})) {
    record(op, {t, o}, t,
           [shape = o.shape(), slope = kind == BinaryOp::sub ? -alpha : alpha](
               const Tensor& dy, Needs needs) -> Grads {
             return {dy, needs[1] ? mul(sum_to(dy, shape), slope) : Tensor()};
           });
  }
  return t;
}

}  // namespace
}  // namespace ops

const Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) const& {
  return ops::add_in_place("add_", BinaryOp::add, *this, other, alpha);
}
const Tensor& Tensor::sub_(const Tensor& other, const Scalar& alpha) const& {
  ops::refuse_bool("sub_", *this, other);
  return ops::add_in_place("sub_", BinaryOp::sub, *this, other, alpha);
}

const Tensor& Tensor::mul_(const Tensor& given) const& {
  ops::check_in_place("mul_", *this, given);
  const Tensor other = ops::beside("mul_", given, device());
  if (ops::is_wider("mul_", *this, other))
    return ops::change("mul_", *this, [&](const Tensor& old) { return braid::mul(old, other); });
  Tensor o = ops::operand("mul_", *this, other);
  if (needs_grad({*this, other})) {
    if (o.storage() == storage()) o = o.clone();
    SavedTensor by, old;
    if (requires_grad()) by = SavedTensor(o);
    if (o.requires_grad()) {  // its gradient needs the old values, so copy them
      const Tensor copy = detach().clone();
      if (impl_->grad_fn) detail::attach(copy, impl_->grad_fn, impl_->output_nr);
      old = SavedTensor(copy);
    }
    ops::binary_in_place("mul_", BinaryOp::mul, *this, &o, 0);
    record("mul_", {*this, o}, *this,
           [old, by, shape = o.shape()](const Tensor& dy, Needs needs) -> Grads {
             return {needs[0] ? dy * by.get() : Tensor(),
                     needs[1] ? ops::sum_to(dy * old.get(), shape) : Tensor()};
           });
    return *this;
  }
  ops::binary_in_place("mul_", BinaryOp::mul, *this, &o, 0);
  return *this;
}

const Tensor& Tensor::add_(const Scalar& value) const& {
  ops::check_in_place("add_", *this, {});
  ops::number_in_place("add_", BinaryOp::add, *this, value);
  return *this;  // the gradient does not change, so the graph stays as it is
}
const Tensor& Tensor::sub_(const Scalar& value) const& {
  ops::check_in_place("sub_", *this, {});
  ops::refuse_bool("sub_", *this, *this);
  ops::number_in_place("sub_", BinaryOp::sub, *this, value);
  return *this;
}

const Tensor& Tensor::mul_(const Scalar& value) const& {
  ops::check_in_place("mul_", *this, {});
  ops::number_in_place("mul_", BinaryOp::mul, *this, value);
  if (needs_grad({*this}))
    record("mul_", {*this}, *this,
           [value](const Tensor& dy) -> Grads { return {braid::mul(dy, value)}; });
  return *this;
}

const Tensor& Tensor::div_(const Tensor& given) const& {
  ops::check_in_place("div_", *this, given);
  const Tensor other = ops::beside("div_", given, device());
  ops::check_floating("div_", *this);
  if (ops::is_wider("div_", *this, other))
    return ops::change("div_", *this, [&](const Tensor& old) { return braid::div(old, other); });
  if (needs_grad({*this, other}))
    return ops::recorded_in_place(
        *this, [&](const Tensor& old) { return braid::div(old, other.to(dtype())); });
  Tensor o = other.to(dtype());
  if (ops::overlaps(*this, o)) o = o.clone();
  ops::binary_in_place("div_", BinaryOp::div, *this, &o, 0);
  return *this;
}

const Tensor& Tensor::div_(const Scalar& value) const& {
  ops::check_in_place("div_", *this, {});
  ops::check_floating("div_", *this);
  if (needs_grad({*this}))
    return ops::recorded_in_place(*this, [&](const Tensor& old) { return braid::div(old, value); });
  ops::binary_in_place("div_", BinaryOp::div, *this, nullptr, value.to_double());
  return *this;
}

}  // namespace braid
