// More in-place ops. If a gradient is recorded, the op runs on a copy of the old values, and its
// result is written back together with its graph. Otherwise the kernel overwrites its input.
#include <cmath>

#include <braid/core/kernel_args/elementwise.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "choose.hpp"
#include "map.hpp"

namespace braid {
namespace {

/// Sets t = f(old t), with the gradient of f.
template <class F> const Tensor& recorded(const Tensor& t, F f) {
  const Tensor old = t.detach().clone();
  if (t.id()->grad_fn) detail::attach(old, t.id()->grad_fn, t.id()->output_nr);
  const Tensor y = f(old);
  ops::copy_values(t, y.detach());
  t.storage()->bump_version();
  if (y.id()->grad_fn) detail::attach(t, y.id()->grad_fn, y.id()->output_nr);
  return t;
}

/// Computes t = t op (other or number) for floating tensors of the same dtype.
void binary_over(const char* op, BinaryOp kind, const Tensor& t, const Tensor* other,
                 double number) {
  if (t.numel() == 0) return;
  BinaryArgs args;
  args.op = kind;
  args.dtype = t.dtype();
  args.out = t.id()->data();
  args.a = t.id()->data();
  args.b = other != nullptr ? other->id()->data() : nullptr;
  args.scalar = number;
  args.alpha = 1;
  ops::fill_loop(args.loop, t.shape(), {t.id(), t.id(), other != nullptr ? other->id() : t.id()});
  launch(op, t.device(), &KernelTable::binary, args);
  t.storage()->bump_version();
}

/// Throws ShapeError unless `other` broadcasts to the shape of t.
void check_fits(const char* op, const Tensor& t, const Tensor& other) {
  if (broadcast_shapes(op, t.shape(), other.shape()) != t.shape())
    throw ShapeError(
        str(op, ": expected a shape that broadcasts to ", t.shape(), ", got ", other.shape()));
}
/// Returns true if an elementwise op that writes t could read elements of `other` after they were
/// overwritten.
bool overlaps(const Tensor& t, const Tensor& other) {
  return other.storage() == t.storage() &&
         !(other.storage_offset() == t.storage_offset() && other.shape() == t.shape() &&
           other.strides() == t.strides());
}

}  // namespace

const Tensor& Tensor::div_(const Tensor& other) const& {
  ops::check_in_place("div_", *this, other);
  ops::check_device("div_", *this, other);
  ops::check_floating("div_", *this);
  check_fits("div_", *this, other);
  if (needs_grad({*this, other}))
    return recorded(*this, [&](const Tensor& old) { return div(old, other.to(dtype())); });
  Tensor o = other.to(dtype());
  if (overlaps(*this, o)) o = o.clone();
  binary_over("div_", BinaryOp::div, *this, &o, 0);
  return *this;
}

const Tensor& Tensor::div_(const Scalar& value) const& {
  ops::check_in_place("div_", *this, {});
  ops::check_floating("div_", *this);
  if (needs_grad({*this}))
    return recorded(*this, [&](const Tensor& old) { return div(old, value); });
  binary_over("div_", BinaryOp::div, *this, nullptr, value.to_double());
  return *this;
}

const Tensor& Tensor::clamp_(const std::optional<Scalar>& min,
                             const std::optional<Scalar>& max) const& {
  ops::check_in_place("clamp_", *this, {});
  for (const std::optional<Scalar>* bound : {&min, &max})
    if (*bound && !is_floating(dtype()) && dtype() != DType::bool_ && !(*bound)->is_whole() &&
        !std::isinf((*bound)->to_double()))
      throw DTypeError(str("clamp_: expected bounds that ", dtype(), " can hold, got ", **bound));
  const ops::Bounds b = ops::clamp_bounds("clamp_", *this, min, max);
  if (needs_grad({*this}))
    return recorded(*this, [&](const Tensor& old) { return ops::clamp_values(old, b); });
  if (numel() == 0) return *this;
  if (is_floating(dtype())) ops::clamp_in_place(*this, b);
  else ops::clamp_integers("clamp_", *this, *this, b);
  storage()->bump_version();
  return *this;
}

const Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const& {
  ops::check_in_place("masked_fill_", *this, {});
  ops::check_mask("masked_fill_", *this, mask);
  check_fits("masked_fill_", *this, mask);
  const Scalar number = ops::fill_value("masked_fill_", value, dtype());
  if (needs_grad({*this}))
    return recorded(*this, [&](const Tensor& old) { return masked_fill(old, mask, number); });
  if (numel() == 0) return *this;
  const Tensor m = overlaps(*this, mask) ? mask.clone() : mask,
               filler = ops::filled({}, number, dtype(), device());
  WhereArgs args;
  args.dtype = dtype();
  args.out = id()->data();
  args.condition = m.id()->data();
  args.a = filler.id()->data();
  args.b = id()->data();
  ops::fill_loop(args.loop, shape(), {id(), m.id(), filler.id(), id()});
  launch("masked_fill_", device(), &KernelTable::where, args);
  storage()->bump_version();
  return *this;
}

const Tensor& Tensor::relu_() const& {
  ops::check_in_place("relu_", *this, {});
  (void)ops::numbers("relu_", *this);
  if (needs_grad({*this})) return recorded(*this, [](const Tensor& old) { return relu(old); });
  if (numel() == 0) return *this;
  UnaryArgs args;
  args.op = UnaryOp::relu;
  args.dtype = dtype();
  args.out = id()->data();
  args.x = id()->data();
  args.alpha = 0;
  ops::fill_loop(args.loop, shape(), {id(), id()});
  launch("relu_", device(), &KernelTable::unary, args);
  storage()->bump_version();
  return *this;
}

}  // namespace braid
