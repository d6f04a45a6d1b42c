#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/nn/internal/marks.hpp>
#include <braid/nn/parameter.hpp>

namespace braid::nn {

Tensor detail::copied(const Tensor& source) {
  if (tree::Sharing::count_copy()) return source;
  if (!source.defined()) return {};
  if (detail::has_mark(source, detail::Mark::tied))
    throw ArgumentError(
        "copy: expected an untied parameter, got a tied one; use clone(model), which keeps ties");
  Tensor copy;
  {
    NoGrad guard;
    copy = source.clone();
  }
  if (source.requires_grad()) copy.requires_grad_();
  return copy;
}

Tensor detail::as_parameter(const Tensor& t, bool requires_grad) {
  if (!t.defined()) return {};
  if (requires_grad && !is_floating(t.dtype())) {
    throw DTypeError(str("Parameter: expected a floating point tensor, got ", t.dtype(),
                         "; pass requires_grad = false, or make it a Buffer"));
  }
  Tensor parameter = t.detach();
  if (requires_grad) parameter.requires_grad_();
  return parameter;
}

void tie(Parameter& a, Parameter& b) {
  if (!a.defined() || !b.defined())
    throw ArgumentError(str("tie: expected two defined parameters, got an undefined ",
                            a.defined() ? "second" : "first"));
  if (a.shape() != b.shape())
    throw ShapeError(
        str("tie: expected parameters of one shape, got ", a.shape(), " and ", b.shape()));
  if (a.dtype() != b.dtype())
    throw DTypeError(
        str("tie: expected parameters of one dtype, got ", a.dtype(), " and ", b.dtype()));
  if (a.device() != b.device())
    throw DeviceError(
        str("tie: expected parameters on one device, got ", a.device(), " and ", b.device()));
  static_cast<Tensor&>(a) = b;
  detail::set_mark(b, detail::Mark::tied);
}

}  // namespace braid::nn
