// In-place ops. Each increments the storage's version, so that a backward that saved the old values
// throws instead of using the new ones.
#include <braid/core/ops/elementwise.hpp>

#include <braid/core/kernel_args/elementwise.hpp>

#include "map.hpp"

namespace braid {

const Tensor& Tensor::kept(const char* op) const {
  const TensorImpl& impl = detail::defined(impl_);
  if (impl.looks_like_part && impl.references() == 1 && impl.storage->references() == 1)
    throw LayoutError(
        str(op,
            ": expected memory that something holds, got the copy that x[index], or a reshape of "
            "memory in another order, has made, and which ends with this line; keep it in a "
            "variable, change x itself (scatter, index_add, where), or use the op without _"));
  return *this;
}

namespace ops {

bool has_own_elements(const TensorImpl& t) noexcept {
  if (t.contiguous || t.numel < 2) return true;
  // Sort the dims by stride. Each stride must exceed the largest offset that the smaller strides
  // reach. This holds for views of contiguous memory. It also rejects interleaved strides that do
  // not overlap.
  std::int64_t sizes[kMaxRank], steps[kMaxRank];
  int n = 0;
  for (int d = 0; d < t.shape.rank(); ++d) {
    if (t.shape[d] == 1) continue;
    const std::int64_t step = t.strides[d] < 0 ? -t.strides[d] : t.strides[d];
    int at = n++;
    for (; at > 0 && steps[at - 1] > step; --at) {
      steps[at] = steps[at - 1];
      sizes[at] = sizes[at - 1];
    }
    steps[at] = step;
    sizes[at] = t.shape[d];
  }
  std::int64_t reached = 0;  // no overflow: make_view has checked the largest offset
  for (int i = 0; i < n; ++i) {
    if (steps[i] <= reached) return false;
    reached += (sizes[i] - 1) * steps[i];
  }
  return true;
}

void check_in_place(const char* op, const Tensor& t, const Tensor& source) {
  const TensorImpl& impl = detail::defined(t.impl());
  if (!has_own_elements(impl))
    throw LayoutError(str(op,
                          ": expected a tensor whose elements each have their own memory, got an "
                          "expanded or overlapping one, shape ",
                          impl.shape, ", strides ", impl.strides, "; use clone()"));
  if (!grad_enabled()) return;
  if (impl.requires_grad && !impl.grad_fn)
    throw AutogradError(str(
        op,
        ": expected a tensor that is not a leaf requiring grad, got one; change it under NoGrad"));
  const bool recorded =
      impl.grad_fn || (is_floating(impl.dtype) && source.defined() && source.requires_grad());
  if (recorded && (impl.is_view || impl.has_views.load(std::memory_order_relaxed)))
    throw AutogradError(
        str(op, ": expected a tensor without views where gradients are recorded, got a ",
            impl.is_view ? "view" : "tensor with views"));
}

namespace {

/// Computes t = op(t, other). Requires t's dtype and device, and a shape that broadcasts to t's.
void binary_in_place(const char* op, BinaryOp kind, const Tensor& t, const Tensor& other,
                     double alpha) {
  if (t.numel() == 0) return;
  BinaryArgs args;
  args.op = kind;
  args.dtype = t.dtype();
  args.out = t.id()->data();
  args.a = t.id()->data();
  args.b = other.id()->data();
  args.scalar = 0;
  args.alpha = alpha;
  fill_loop(args.loop, t.shape(), {t.id(), t.id(), other.id()});
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

/// Checks `other` against t and converts it to t's dtype. Copies it if it shares t's storage in
/// another layout.
Tensor operand(const char* op, const Tensor& t, const Tensor& other) {
  check_device(op, t, other);
  if (broadcast_shapes(op, t.shape(), other.shape()) != t.shape())
    throw ShapeError(
        str(op, ": expected a shape that broadcasts to ", t.shape(), ", got ", other.shape()));
  if ((!is_floating(t.dtype()) && is_floating(other.dtype())) ||
      (t.dtype() == DType::bool_ && other.dtype() != DType::bool_))
    throw DTypeError(
        str(op, ": expected an operand that ", t.dtype(), " can hold, got ", other.dtype()));
  Tensor o = other.to(t.dtype());
  if (o.storage() == t.storage() && !(o.storage_offset() == t.storage_offset() &&
                                      o.shape() == t.shape() && o.strides() == t.strides()))
    o = o.clone();
  return o;
}

}  // namespace
}  // namespace ops

const Tensor& Tensor::copy_(const Tensor& source) const& {
  ops::check_in_place("copy_", *this, source);
  if (broadcast_shapes("copy_", shape(), source.shape()) != shape())
    throw ShapeError(
        str("copy_: expected a shape that broadcasts to ", shape(), ", got ", source.shape()));
  if (source.id() == id()) return *this;
  // integers have no gradient
  const bool recorded =
      is_floating(dtype()) && (needs_grad({source}) || (grad_enabled() && impl_->grad_fn));
  // If both devices use host memory, the kernel reads the source directly: one pass instead of two.
  // Otherwise the source is transferred into separate memory first, so that a failed transfer
  // changes nothing.
  const bool within_reach =
      device_context(device()).host_memory && device_context(source.device()).host_memory;
  Tensor from = within_reach ? source.detach() : source.detach().to(device());
  if (from.storage() == storage()) from = from.clone();
  ops::copy_values(*this, from);
  storage()->bump_version();
  if (recorded) {
    record("copy_", {*this, source}, *this,
           [shape = source.shape(), to = source.device(), as = source.dtype()](
               const Tensor& dy, Needs needs) -> Grads {
             return {Tensor(), needs[1] ? ops::sum_to(dy, shape).to(to, as) : Tensor()};
           });
  }
  return *this;
}

const Tensor& Tensor::fill_(const Scalar& value) const& {
  ops::check_in_place("fill_", *this, {});
  ops::fill_values(*this, ops::fill_value("fill_", value, dtype()));
  if (numel()) storage()->bump_version();
  if (grad_enabled()) impl_->grad_fn = {};  // the new values do not depend on the old graph
  return *this;
}
const Tensor& Tensor::zero_() const& { return fill_(0); }

namespace ops {
namespace {

/// Computes t = t ± by * other.
const Tensor& add_in_place(const char* op, BinaryOp kind, const Tensor& t, const Tensor& other,
                           const Scalar& by) {
  check_in_place(op, t, other);
  Tensor o = operand(op, t, other);
  const Scalar factor = add_alpha(op, t.dtype(), by);
  if (!factor.is_exact_double()) o = mul(o, factor);
  const double alpha = factor.is_exact_double() ? factor.to_double() : 1;
  binary_in_place(op, kind, t, o, alpha);
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

const Tensor& Tensor::mul_(const Tensor& other) const& {
  ops::check_in_place("mul_", *this, other);
  Tensor o = ops::operand("mul_", *this, other);
  // the gradients need the old values, so copy them
  if (needs_grad({*this, other})) {
    if (o.storage() == storage()) o = o.clone();
    const SavedTensor saved(o);
    const Tensor old = detach().clone();
    if (impl_->grad_fn) detail::attach(old, impl_->grad_fn, impl_->output_nr);
    ops::binary_in_place("mul_", BinaryOp::mul, *this, o, 1);
    record("mul_", {*this, o}, *this,
           [old, saved, shape = o.shape()](const Tensor& dy, Needs needs) -> Grads {
             return {needs[0] ? dy * saved.get() : Tensor(),
                     needs[1] ? ops::sum_to(dy * old, shape) : Tensor()};
           });
    return *this;
  }
  ops::binary_in_place("mul_", BinaryOp::mul, *this, o, 1);
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
    record("mul_", {*this}, *this, [value](const Tensor& dy) -> Grads { return {mul(dy, value)}; });
  return *this;
}

}  // namespace braid
