// Arithmetic of two tensors, or of a tensor and a number. Powers, remainders and the like are in
// binary_math.cpp.
#include <braid/core/ops/binary.hpp>

#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>

#include "images.hpp"
#include "map.hpp"

namespace braid {
namespace ops {

Tensor binary(const char* op, BinaryOp kind, const Tensor& a, const Tensor& b, double alpha) {
  const TensorImpl *x = a.id(), *y = b.id();
  const Shape shape = x->shape == y->shape ? x->shape : broadcast_shapes(op, x->shape, y->shape);
  const DType dtype = is_comparison(kind) ? DType::bool_ : x->dtype;
  Tensor out = x->shape == shape   ? make_like(*x, dtype)
               : y->shape == shape ? make_like(*y, dtype)
                                   : make_tensor(shape, dtype, x->device);
  if (out.numel() == 0) return out;
  BinaryArgs args;
  args.op = kind;
  args.dtype = x->dtype;
  args.out = out.id()->data();
  args.a = x->data();
  args.b = y->data();
  args.scalar = 0;
  args.alpha = alpha;
  fill_loop(args.loop, shape, {out.id(), x, y});
  launch(op, x->device, &KernelTable::binary, args);
  return out;
}

void scalar_into(const char* op, BinaryOp kind, const Tensor& out, const Tensor& t,
                 const Scalar& value, bool reversed) {
  if (out.numel() == 0) return;
  const TensorImpl* x = t.id();
  const bool floating = is_floating(x->dtype);
  const Scalar number = floating ? value : Scalar(wrapped(value, x->dtype));
  BinaryArgs args;
  args.op = kind;
  args.dtype = x->dtype;
  args.out = out.id()->data();
  args.scalar = number.to_double();
  args.alpha = 1;
  // Kernels take a number as a double. An integer that no double represents becomes a tensor.
  Tensor held;
  if (!floating && !number.is_exact_double()) held = filled({}, number, x->dtype, x->device);
  const TensorImpl* other = held.defined() ? held.id() : x;
  const void* const at = held.defined() ? other->data() : nullptr;
  args.a = reversed ? at : x->data();
  args.b = reversed ? x->data() : at;
  fill_loop(args.loop, x->shape, {out.id(), reversed ? other : x, reversed ? x : other});
  launch(op, x->device, &KernelTable::binary, args);
}

Tensor with_scalar(const char* op, BinaryOp kind, const Tensor& t, const Scalar& value,
                   bool reversed) {
  const TensorImpl* x = t.id();
  Tensor out = make_like(*x, is_comparison(kind) ? DType::bool_ : x->dtype);
  scalar_into(op, kind, out, t, value, reversed);
  return out;
}

namespace {
bool is_number_on_cpu(const Tensor& t) {
  return t.dim() == 0 && t.device().type() == DeviceType::cpu;
}
}  // namespace

Device common_device(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors)
    if (!is_number_on_cpu(*t)) return t->device();
  return (*tensors.begin())->device();
}

void check_beside(const char* op, const Tensor& t, Device device) {
  if (t.device() != device && (device.type() == DeviceType::cpu || !is_number_on_cpu(t)))
    throw DeviceError(
        str(op, ": expected tensors on one device, got ", device, " and ", t.device()));
}

Tensor beside(const char* op, const Tensor& t, Device device) {
  check_beside(op, t, device);
  return t.to(device);
}

Pair::Pair(const char* op, const Tensor& x, const Tensor& y, bool floating) {
  (void)detail::defined(x.impl());
  (void)detail::defined(y.impl());
  a = &x;
  b = &y;
  if (x.device() != y.device()) [[unlikely]] {
    const Device device = common_device({&x, &y});
    a = &(held_a = beside(op, x, device));
    b = &(held_b = beside(op, y, device));
  }
  DType dtype = promote(x.dtype(), y.dtype());
  if (floating && !is_floating(dtype)) dtype = DType::float32;
  if (x.dtype() != dtype) a = &(held_a = a->to(dtype));
  if (y.dtype() != dtype) b = &(held_b = b->to(dtype));
}

Tensor for_scalar(const Tensor& x, const Scalar& value) {
  const DType own = detail::defined(x.impl()).dtype, dtype = promote(own, value);
  return dtype == own ? x : x.to(dtype);
}

void check_together(const char* op, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors) (void)detail::defined(t->impl());
  const Device device = common_device(tensors);
  Shape shape;
  for (const Tensor* t : tensors) {
    check_beside(op, *t, device);
    shape = broadcast_shapes(op, shape, t->shape());
  }
}

Scalar add_alpha(const char* op, DType dtype, const Scalar& alpha) {
  if (is_floating(dtype)) return alpha.to_double();
  if (!alpha.is_whole())
    throw DTypeError(str(op, ": expected a whole alpha for ", dtype, ", got ", alpha));
  return dtype == DType::bool_ ? 1 : wrapped(alpha, dtype);
}

void refuse_bool(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::bool_ || b.dtype() == DType::bool_)
    throw DTypeError(str(op, ": expected numbers, got bool; use ne(a, b), or convert with to()"));
}

Tensor sum_to(const Tensor& g, const Shape& shape) {
  if (g.shape() == shape) return g;
  const int extra = g.dim() - shape.rank();
  Shape dims;
  for (int i = 0; i < g.dim(); ++i)
    if (i < extra || (shape[i - extra] == 1 && g.shape()[i] != 1)) dims.push_back(i);
  return (dims.empty() ? g : sum(g, dims, true)).reshape(shape);
}

}  // namespace ops

Tensor add(const Tensor& a, const Tensor& b, const Scalar& by) {
  const ops::Pair p("add", a, b);
  const Scalar factor = ops::add_alpha("add", p.a->dtype(), by);
  if (!factor.is_exact_double()) return add(*p.a, mul(*p.b, factor));
  const double alpha = factor.to_double();
  Tensor y = ops::binary("add", BinaryOp::add, *p.a, *p.b, alpha);
  if (!needs_grad({*p.a, *p.b})) return y;
  return record(
      "add", {*p.a, *p.b}, y,
      [sa = p.a->shape(), sb = p.b->shape(), alpha](const Tensor& dy, Needs needs) -> Grads {
        Tensor db = needs[1] ? ops::sum_to(dy, sb) : Tensor();
        return {needs[0] ? ops::sum_to(dy, sa) : Tensor(),
                needs[1] && alpha != 1 ? mul(db, alpha) : db};
      });
}

Tensor sub(const Tensor& a, const Tensor& b, const Scalar& by) {
  ops::refuse_bool("sub", a, b);
  const ops::Pair p("sub", a, b);
  const Scalar factor = ops::add_alpha("sub", p.a->dtype(), by);
  if (!factor.is_exact_double()) return sub(*p.a, mul(*p.b, factor));
  const double alpha = factor.to_double();
  Tensor y = ops::binary("sub", BinaryOp::sub, *p.a, *p.b, alpha);
  if (!needs_grad({*p.a, *p.b})) return y;
  return record(
      "sub", {*p.a, *p.b}, y,
      [sa = p.a->shape(), sb = p.b->shape(), alpha](const Tensor& dy, Needs needs) -> Grads {
        return {needs[0] ? ops::sum_to(dy, sa) : Tensor(),
                needs[1] ? mul(ops::sum_to(dy, sb), -alpha) : Tensor()};
      });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  const ops::Pair p("mul", a, b);
  Tensor y = ops::binary("mul", BinaryOp::mul, *p.a, *p.b);
  if (!needs_grad({*p.a, *p.b})) return y;
  const bool a_needs = p.a->requires_grad();
  if (!a_needs || !p.b->requires_grad()) {  // saves the constant alone: the other one may change
    return record(
        "mul", {*p.a, *p.b}, y,
        [constant = SavedTensor(a_needs ? *p.b : *p.a),
         shape = a_needs ? p.a->shape() : p.b->shape(), a_needs](const Tensor& dy) -> Grads {
          Tensor g = ops::sum_to(dy * constant.get(), shape), none;
          return a_needs ? Grads(std::move(g), std::move(none))
                         : Grads(std::move(none), std::move(g));
        });
  }
  return record(
      "mul", {*p.a, *p.b}, y,
      [x = SavedTensor(*p.a), z = SavedTensor(*p.b)](const Tensor& dy, Needs needs) -> Grads {
        const Tensor u = x.get(), v = z.get();
        return {needs[0] ? ops::sum_to(dy * v, u.shape()) : Tensor(),
                needs[1] ? ops::sum_to(dy * u, v.shape()) : Tensor()};
      });
}

Tensor div(const Tensor& a, const Tensor& b) {
  const ops::Pair p("div", a, b, true);
  Tensor y = ops::binary("div", BinaryOp::div, *p.a, *p.b);
  if (!needs_grad({*p.a, *p.b})) return y;
  if (!p.b->requires_grad()) {  // saves the constant divisor alone: the dividend may change
    return record("div", {*p.a, *p.b}, y,
                  [z = SavedTensor(*p.b), shape = p.a->shape()](const Tensor& dy) -> Grads {
                    return {ops::sum_to(dy / z.get(), shape), Tensor()};
                  });
  }
  return record(
      "div", {*p.a, *p.b}, y,
      [x = SavedTensor(*p.a), z = SavedTensor(*p.b)](const Tensor& dy, Needs needs) -> Grads {
        const Tensor u = x.get(), v = z.get(), q = dy / v;
        return {needs[0] ? ops::sum_to(q, u.shape()) : Tensor(),
                needs[1] ? ops::sum_to(neg(q * (u / v)), v.shape()) : Tensor()};
      });
}

namespace {

/// maximum and minimum. The operand that was not chosen gets gradient 0, equal operands get half
/// each. If one of them is NaN, both get the whole gradient.
Tensor extremum(const char* name, BinaryOp kind, Tensor (*lost)(const Tensor&, const Tensor&),
                const Tensor& x, const Tensor& z) {
  const ops::Pair p(name, x, z);
  Tensor y = ops::binary(name, kind, *p.a, *p.b);
  if (!needs_grad({*p.a, *p.b})) return y;
  return record(
      name, {*p.a, *p.b}, y,
      [sa = SavedTensor(*p.a), sb = SavedTensor(*p.b), lost](const Tensor& dy,
                                                             Needs needs) -> Grads {
        const Tensor a = sa.get().detach(), b = sb.get().detach();
        const Tensor zero = ops::filled({}, 0, dy.dtype(), dy.device());
        const Tensor shared = where(eq(a, b), mul(dy, 0.5), dy);
        return {needs[0] ? ops::sum_to(where(lost(a, b), zero, shared), a.shape()) : Tensor(),
                needs[1] ? ops::sum_to(where(lost(b, a), zero, shared), b.shape()) : Tensor()};
      });
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
  return extremum("maximum", BinaryOp::maximum, &lt, a, b);
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  return extremum("minimum", BinaryOp::minimum, &gt, a, b);
}

Tensor add(const Tensor& a, const Scalar& b) {
  const Tensor x = ops::for_scalar(a, b);
  Tensor y = ops::with_scalar("add", BinaryOp::add, x, b);
  if (!needs_grad({x})) return y;
  return record("add", {x}, y, [](const Tensor& dy) -> Grads { return {dy}; });
}
Tensor sub(const Tensor& a, const Scalar& b) {
  ops::refuse_bool("sub", a, a);
  const Tensor x = ops::for_scalar(a, b);
  Tensor y = ops::with_scalar("sub", BinaryOp::sub, x, b);
  if (!needs_grad({x})) return y;
  return record("sub", {x}, y, [](const Tensor& dy) -> Grads { return {dy}; });
}
Tensor sub(const Scalar& a, const Tensor& b) {
  ops::refuse_bool("sub", b, b);
  const Tensor x = ops::for_scalar(b, a);
  Tensor y = ops::with_scalar("sub", BinaryOp::sub, x, a, true);
  if (!needs_grad({x})) return y;
  return record("sub", {x}, y, [](const Tensor& dy) -> Grads { return {neg(dy)}; });
}
Tensor mul(const Tensor& a, const Scalar& b) {
  const Tensor x = ops::for_scalar(a, b);
  Tensor y = ops::with_scalar("mul", BinaryOp::mul, x, b);
  if (!needs_grad({x})) return y;
  return record("mul", {x}, y, [b](const Tensor& dy) -> Grads { return {mul(dy, b)}; });
}
Tensor div(const Tensor& a, const Scalar& b) {
  const Tensor x = ops::as_floating(a);
  Tensor y = ops::with_scalar("div", BinaryOp::div, x, b);
  if (!needs_grad({x})) return y;
  return record("div", {x}, y, [b](const Tensor& dy) -> Grads { return {div(dy, b)}; });
}
Tensor div(const Scalar& a, const Tensor& b) {
  const Tensor x = ops::as_floating(b);
  Tensor y = ops::with_scalar("div", BinaryOp::div, x, a, true);
  if (!needs_grad({x})) return y;
  return record("div", {x}, y, [x = SavedTensor(x), a](const Tensor& dy) -> Grads {
    const Tensor of = x.get();
    return {neg(dy * (div(a, of) / of))};  // square(of) may be out of range
  });
}

Tensor ops::relu_backward(const Tensor& y, const Tensor& dy) {
  Tensor dx = binary("relu_backward", BinaryOp::relu_backward, dy, y);
  if (!needs_grad({dy})) return dx;  // the gradient for y is 0 almost everywhere
  return record("relu_backward", {dy}, dx, [y = SavedTensor(y.detach())](const Tensor& g) -> Grads {
    return {relu_backward(y.get(), g)};
  });
}

Tensor ops::tanh_backward(const Tensor& y, const Tensor& dy) {
  Tensor dx = binary("tanh_backward", BinaryOp::tanh_backward, dy, y);
  if (!needs_grad({y, dy})) return dx;
  return record("tanh_backward", {y, dy}, dx,
                [sy = SavedTensor(y), sd = SavedTensor(dy)](const Tensor& g, Needs needs) -> Grads {
                  return {needs[0] ? mul(g * sd.get() * sy.get(), -2) : Tensor(),
                          needs[1] ? tanh_backward(sy.get(), g) : Tensor()};
                });
}

Tensor ops::sigmoid_backward(const Tensor& y, const Tensor& dy) {
  Tensor dx = binary("sigmoid_backward", BinaryOp::sigmoid_backward, dy, y);
  if (!needs_grad({y, dy})) return dx;
  return record("sigmoid_backward", {y, dy}, dx,
                [sy = SavedTensor(y), sd = SavedTensor(dy)](const Tensor& g, Needs needs) -> Grads {
                  return {needs[0] ? g * sd.get() * sub(1, mul(sy.get(), 2)) : Tensor(),
                          needs[1] ? sigmoid_backward(sy.get(), g) : Tensor()};
                });
}

}  // namespace braid
