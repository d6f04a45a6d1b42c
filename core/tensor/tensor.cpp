// Creates tensors: contiguous ones, and views with checked bounds.
#include <braid/core/tensor.hpp>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/step_capture.hpp>

#include "autograd/hooks.hpp"
#include "autograd/view_history.hpp"

namespace braid {

TensorImpl::TensorImpl() noexcept = default;
TensorImpl::~TensorImpl() {
  if (hooked) detail::forget_hooks(this);
}

namespace detail {
void undefined_tensor() {
  throw ArgumentError("tensor: expected a defined tensor, got an undefined one");
}

bool dense(const Shape& shape, const Shape& strides) noexcept {
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}
}  // namespace detail

Tensor make_tensor(const Shape& shape, DType dtype, Device device) {
  const std::int64_t n = checked_numel("tensor", shape, size_of(dtype));
  Ref<TensorImpl> impl(new TensorImpl);
  impl->shape = shape;
  impl->strides = contiguous_strides(shape);
  impl->numel = n;
  impl->dtype = dtype;
  impl->device = device;
  impl->storage = Storage::allocate(static_cast<std::size_t>(n) * size_of(dtype), device);
  return Tensor(std::move(impl));
}

Tensor make_tensor_on(const Ref<Storage>& storage, const Shape& shape, const Shape& strides,
                      std::int64_t offset, DType dtype) {
  const std::int64_t n = checked_numel("view", shape, size_of(dtype));
  if (strides.rank() != shape.rank())
    throw ShapeError(str("view: expected ", shape.rank(), " strides, got ", strides));
  // Computes the largest offset, with overflow checks. Kernels do not check bounds, so views are
  // checked here.
  bool ok = offset >= 0;
  std::int64_t last = offset;
  for (int i = 0; i < shape.rank(); ++i) {
    ok = ok && strides[i] >= 0;
    if (n == 0 || shape[i] <= 1) continue;
    std::int64_t reach = 0;
    ok = ok && !__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) &&
         !__builtin_add_overflow(last, reach, &last);
  }
  const auto available = static_cast<std::int64_t>(storage->bytes() / size_of(dtype));
  ok = ok && (n == 0 ? offset <= available : last < available);
  if (!ok)
    throw ShapeError(str("view: expected elements inside a storage of ", available, " ", dtype,
                         " elements, got shape ", shape, ", strides ", strides, ", offset ",
                         offset));
  Ref<TensorImpl> impl(new TensorImpl);
  impl->shape = shape;
  impl->strides = strides;
  impl->offset = offset;
  impl->numel = n;
  impl->dtype = dtype;
  impl->device = storage->device();
  impl->contiguous = detail::dense(shape, strides);
  impl->storage = storage;
  return Tensor(std::move(impl));
}

Tensor make_view(const Tensor& base, const Shape& shape, const Shape& strides,
                 std::int64_t offset) {
  Tensor view = make_tensor_on(base.storage(), shape, strides, offset, base.dtype());
  detail::be_view_of(*view.id(), *base.id());
  return view;
}

std::int64_t Tensor::size(std::int64_t dim) const {
  const Shape& s = shape();
  if (s.rank() == 0)
    throw IndexError(str("size: expected a tensor with dimensions, got a scalar (dim ", dim, ")"));
  return s[wrap_dim("size", dim, s.rank())];
}

const Tensor& Tensor::requires_grad_(bool on) const {
  TensorImpl& t = detail::defined(impl_);
  detail::settle_history(t);
  if (t.grad_fn) {
    if (!on)
      throw AutogradError(str("requires_grad_: expected a leaf, got the output of ",
                              t.grad_fn->name(), "; use detach()"));
    return *this;
  }
  if (on && !is_floating(t.dtype))
    throw DTypeError(str("requires_grad_: expected a floating point tensor, got ", t.dtype));
  if (t.requires_grad != on) detail::StepCapture::requires_grad_set(t, on);
  t.requires_grad = on;
  // A leaf does not follow a base. Holding it would be a cycle if the base's graph used the leaf.
  if (on && t.base) t.base = {}, t.view_kind = ViewKind::no_grad;
  return *this;
}

Tensor Tensor::grad() const {
  TensorImpl& t = detail::defined(impl_);
  if (auto* const capture = detail::StepCapture::current()) capture->reads_grad(t);
  return Tensor(t.grad);
}

void Tensor::set_grad(const Tensor& grad) const {
  TensorImpl& t = detail::defined(impl_);
  if (grad.defined()) {
    if (grad.id() == &t)
      throw AutogradError(
          "set_grad: expected another tensor as the gradient, got the tensor itself");
    if (grad.shape() != t.shape)
      throw ShapeError(str("set_grad: expected shape ", t.shape, ", got ", grad.shape()));
    if (grad.dtype() != t.dtype)
      throw DTypeError(str("set_grad: expected ", t.dtype, ", got ", grad.dtype()));
    if (grad.device() != t.device)
      throw DeviceError(
          str("set_grad: expected a tensor on ", t.device, ", got one on ", grad.device()));
  }
  if (auto* const capture = detail::StepCapture::current()) capture->replaces_grad(t);
  t.grad = grad.impl();
}

Tensor Tensor::detach() const {
  const TensorImpl& t = detail::defined(impl_);
  Ref<TensorImpl> impl(new TensorImpl);
  impl->shape = t.shape;
  impl->strides = t.strides;
  impl->offset = t.offset;
  impl->numel = t.numel;
  impl->dtype = t.dtype;
  impl->device = t.device;
  impl->contiguous = t.contiguous;
  impl->storage = t.storage;
  return Tensor(std::move(impl));
}

void* Tensor::data_as(DType dtype, bool written) const {
  const TensorImpl& t = detail::defined(impl_);
  if (t.dtype != dtype)
    throw DTypeError(str("data: expected the tensor's own type ", t.dtype, ", got ", dtype));
  if (!device_context(t.device).host_memory)
    throw DeviceError(
        str("data: expected memory of the host, got ", t.device, "; use to(\"cpu\")"));
  detail::StepCapture::refuse("data", detail::kNoHostReads);
  if (written) t.storage->expose();
  return t.data();
}

Tensor Tensor::to(DType dtype, bool copy) const { return to(device(), dtype, copy); }

}  // namespace braid
