// In-place ops: what all of them check, copies and constants, and the in-place forms of functions.
// Those of arithmetic are in inplace_binary.cpp.
#include "inplace.hpp"

#include <cmath>

#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "activation.hpp"
#include "autograd/view_history.hpp"
#include "map.hpp"
#include "where.hpp"

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

bool has_own_elements(const Shape& shape, const Shape& strides) noexcept {
  // Sort the dims by stride. Each stride must exceed the largest offset that the smaller strides
  // reach. This holds for views of contiguous memory. It also rejects interleaved strides that do
  // not overlap.
  std::int64_t sizes[kMaxRank], steps[kMaxRank];
  int n = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    const std::int64_t step = strides[d] < 0 ? -strides[d] : strides[d];
    int at = n++;
    for (; at > 0 && steps[at - 1] > step; --at) {
      steps[at] = steps[at - 1];
      sizes[at] = sizes[at - 1];
    }
    steps[at] = step;
    sizes[at] = shape[d];
  }
  std::int64_t reached = 0;  // no overflow: make_view has checked the largest offset
  for (int i = 0; i < n; ++i) {
    if (steps[i] <= reached) return false;
    reached += (sizes[i] - 1) * steps[i];
  }
  return true;
}

namespace {

/// Throws unless a recorded change of the view can be a change of its base.
void check_recorded_view(const char* op, const TensorImpl& view) {
  if (view.view_kind == ViewKind::no_grad)
    throw AutogradError(str(op,
                            ": expected a view that was made where gradients are recorded, got one "
                            "made under NoGrad, whose base would not get the gradient; make the "
                            "view again outside of NoGrad, or change it under NoGrad"));
  if (view.view_kind == ViewKind::many)
    throw AutogradError(str(op,
                            ": expected a view that can be changed where gradients are recorded, "
                            "got one of several results of an op (split, chunk, unbind); use "
                            "narrow or select instead"));
  if (braid::detail::follows_base(view) && view.base->requires_grad && !view.base->grad_fn)
    throw AutogradError(str(op,
                            ": expected a view of a tensor that is not a leaf requiring grad, got "
                            "a view of one; change it under NoGrad"));
}

}  // namespace

void check_in_place(const char* op, const Tensor& t, const Tensor& source) {
  const TensorImpl& impl = detail::defined(t.impl());
  if (!has_own_elements(impl))
    throw LayoutError(str(op,
                          ": expected a tensor whose elements each have their own memory, got an "
                          "expanded or overlapping one, shape ",
                          impl.shape, ", strides ", impl.strides, "; use clone()"));
  if (!grad_enabled()) return;
  const bool has_graph = t.requires_grad();
  if (impl.requires_grad && !impl.grad_fn)
    throw AutogradError(str(
        op,
        ": expected a tensor that is not a leaf requiring grad, got one; change it under NoGrad"));
  if (impl.view_kind == ViewKind::none) return;
  // A view made under NoGrad has no graph of its base's values.
  const bool of_graph = impl.view_kind == ViewKind::no_grad && braid::detail::follows_base(impl) &&
                        Tensor(impl.base).requires_grad();
  if (has_graph || of_graph ||
      (is_floating(impl.dtype) && source.defined() && source.requires_grad()))
    check_recorded_view(op, impl);
  t.id()->settled = true;
}

}  // namespace ops

namespace {
/// True for a view of a part of its base. The base's node gives the old values 0 there, so that
/// other nodes need not.
bool part_of_base(const TensorImpl& t) {
  return detail::follows_base(t) && t.numel != t.base->numel;
}
}  // namespace

const Tensor& Tensor::copy_(const Tensor& source, bool non_blocking) const& {
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
  Tensor from = within_reach ? source.detach() : source.detach().to(device(), non_blocking);
  if (from.storage() == storage()) from = from.clone();
  ops::copy_values(*this, from);
  storage()->bump_version();
  if (recorded) {
    record("copy_", {*this, source}, *this,
           [shape = source.shape(), to = source.device(), as = source.dtype(),
            part = part_of_base(*impl_)](const Tensor& dy, Needs needs) -> Grads {
             return {needs[0] && !part ? ops::zeros_as(dy) : Tensor(),
                     needs[1] ? ops::sum_to(dy, shape).to(to, as) : Tensor()};
           });
  }
  return *this;
}

const Tensor& Tensor::fill_(const Scalar& value) const& {
  ops::check_in_place("fill_", *this, {});
  ops::fill_values(*this, ops::fill_value("fill_", value, dtype()));
  if (numel()) storage()->bump_version();
  if (!needs_grad({*this})) return *this;
  if (part_of_base(*impl_)) detail::change_base(*this, {}, 0);
  else
    record("fill_", {*this}, *this, [](const Tensor& dy) -> Grads { return {ops::zeros_as(dy)}; });
  return *this;
}
const Tensor& Tensor::zero_() const& { return fill_(0); }

const Tensor& Tensor::clamp_(const std::optional<Scalar>& min,
                             const std::optional<Scalar>& max) const& {
  ops::check_in_place("clamp_", *this, {});
  for (const std::optional<Scalar>* bound : {&min, &max})
    if (*bound && !is_floating(dtype()) && dtype() != DType::bool_ && !(*bound)->is_whole() &&
        !std::isinf((*bound)->to_double()))
      throw DTypeError(str("clamp_: expected bounds that ", dtype(), " can hold, got ", **bound));
  const ops::Bounds b = ops::clamp_bounds("clamp_", *this, min, max);
  if (needs_grad({*this}))
    return ops::recorded_in_place(
        *this, [&](const Tensor& old) { return ops::clamp_values(old, b.low, b.high); });
  if (numel() == 0) return *this;
  if (is_floating(dtype())) ops::clamp_in_place(*this, b.low, b.high);
  else ops::clamp_integers("clamp_", *this, *this, b);
  storage()->bump_version();
  return *this;
}

const Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const& {
  ops::check_in_place("masked_fill_", *this, {});
  ops::check_mask("masked_fill_", *this, mask);
  ops::check_beside("masked_fill_", mask, device());
  ops::check_fits("masked_fill_", *this, mask);
  const Scalar number = ops::fill_value("masked_fill_", value, dtype());
  if (needs_grad({*this}))
    return ops::recorded_in_place(
        *this, [&](const Tensor& old) { return braid::masked_fill(old, mask, number); });
  if (numel() == 0) return *this;
  const Tensor m = ops::overlaps(*this, mask) ? mask.clone()
                                              : ops::beside("masked_fill_", mask, device()),
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
  if (needs_grad({*this}))
    return ops::recorded_in_place(*this, [](const Tensor& old) { return braid::relu(old); });
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
