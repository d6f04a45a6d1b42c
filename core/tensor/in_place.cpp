// In-place members that replace all values by random ones, or that change the shape of the tensor.
#include <utility>

#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/shape.hpp>
#include <braid/core/random.hpp>

#include "autograd/view_history.hpp"
#include "ops/common.hpp"

namespace braid {
namespace {

/// Writes make(options of t) into t.
template <class F> const Tensor& overwrite(const char* op, const Tensor& t, F make) {
  ops::check_in_place(op, t, {});
  return t.copy_(make(FactoryOptions{.device = t.device(), .dtype = t.dtype()}));
}

/// True for a view. Where nothing else holds the base, and t has all its elements, as the result of
/// an op whose last step was a reshape, t takes its place: it is no view any more.
bool is_view(const Tensor& t) {
  TensorImpl& impl = *t.id();
  if (impl.view_kind == ViewKind::view && detail::follows_base(impl) &&
      impl.numel == impl.base->numel && impl.base->references() == 1) {
    detail::settle_history(impl);
    detail::be_no_view(t);
  }
  return impl.view_kind != ViewKind::none;
}

/// Gives t the shape and strides of f(t), which is a view of all of t.
template <class F> const Tensor& rearrange(const char* op, const Tensor& t, F f) {
  TensorImpl& impl = detail::defined(t.impl());
  ops::check_in_place(op, t, {});
  if (const auto* const capture = detail::StepCapture::current();
      capture != nullptr && !capture->has_made(*t.storage()))
    detail::StepCapture::refuse(op, "a tensor that the captured step makes, got one from before");
  if (grad_enabled() && t.requires_grad() && is_view(t))
    throw AutogradError(
        str(op, ": expected a tensor that is no view where gradients are recorded, got one"));
  if (impl.grad_fn && !grad_enabled())
    throw AutogradError(str(op,
                            ": expected a tensor without a graph under NoGrad, got one with a "
                            "graph, which would pass on gradients of the old shape; use the op "
                            "without _, or detach()"));
  const Tensor old = t.detach();
  if (impl.grad_fn) detail::attach(old, impl.grad_fn, impl.output_nr);
  const Tensor y = f(old);
  impl.shape = y.shape();
  impl.strides = y.strides();
  impl.contiguous = y.is_contiguous();
  t.storage()->bump_version();
  if (y.id()->grad_fn) detail::attach(t, y.id()->grad_fn, y.id()->output_nr);
  return t;
}

}  // namespace

// Defines the form for a temporary too.
#define BRAID_IN_PLACE(name, parameters, arguments, ...)          \
  const Tensor& Tensor::name parameters const& __VA_ARGS__ Tensor \
      Tensor::name parameters const&& {                           \
    return kept(#name).name arguments;                            \
  }

BRAID_IN_PLACE(fill_, (const Tensor& value), (value), {
  if (value.dim() != 0)
    throw ShapeError(str("fill_: expected a value without dimensions, got shape ", value.shape()));
  return copy_(value);
})
BRAID_IN_PLACE(uniform_, (double low, double high), (low, high), {
  return overwrite("uniform_", *this, [&](const FactoryOptions& options) {
    return uniform(shape(), low, high, options);
  });
})
BRAID_IN_PLACE(normal_, (double mean, double std), (mean, std), {
  return overwrite("normal_", *this, [&](const FactoryOptions& options) {
    return normal(mean, std, shape(), options);
  });
})
BRAID_IN_PLACE(exponential_, (double lambda), (lambda), {
  if (!(lambda > 0)) throw ArgumentError(str("exponential_: expected lambda > 0, got ", lambda));
  ops::check_floating("exponential_", *this);
  return overwrite("exponential_", *this, [&](FactoryOptions options) {
    const DType own = std::exchange(options.dtype, DType::float64).value();
    return (braid::log1p(-rand(shape(), options)) / -lambda).to(own);
  });
})
BRAID_IN_PLACE(bernoulli_, (const Tensor& probability), (probability), {
  return overwrite("bernoulli_", *this, [&](const FactoryOptions&) {
    return braid::bernoulli(probability.to(device()).expand(shape())).to(dtype());
  });
})
BRAID_IN_PLACE(bernoulli_, (double probability), (probability), {
  if (!(probability >= 0 && probability <= 1))
    throw ArgumentError(str("bernoulli_: expected a probability in [0, 1], got ", probability));
  return overwrite("bernoulli_", *this, [&](FactoryOptions options) {
    const DType own = std::exchange(options.dtype, DType::float64).value();
    return braid::bernoulli(full(shape(), probability, options)).to(own);
  });
})
BRAID_IN_PLACE(random_, (std::int64_t low, std::int64_t high), (low, high), {
  return overwrite("random_", *this, [&](const FactoryOptions& options) {
    return randint(low, high, shape(), options);
  });
})
BRAID_IN_PLACE(random_, (std::int64_t high), (high), { return random_(0, high); })
BRAID_IN_PLACE(random_, (), (), { return random_(0, ops::exact_below(dtype())); })
BRAID_IN_PLACE(squeeze_, (), (), {
  return rearrange("squeeze_", *this, [](const Tensor& x) { return x.squeeze(); });
})
BRAID_IN_PLACE(squeeze_, (std::int64_t dim), (dim), {
  return rearrange("squeeze_", *this, [&](const Tensor& x) { return x.squeeze(dim); });
})
BRAID_IN_PLACE(unsqueeze_, (std::int64_t dim), (dim), {
  return rearrange("unsqueeze_", *this, [&](const Tensor& x) { return x.unsqueeze(dim); });
})
BRAID_IN_PLACE(t_, (), (),
               { return rearrange("t_", *this, [](const Tensor& x) { return x.t(); }); })
BRAID_IN_PLACE(transpose_, (std::int64_t a, std::int64_t b), (a, b), {
  return rearrange("transpose_", *this, [&](const Tensor& x) { return x.transpose(a, b); });
})
BRAID_IN_PLACE(swapaxes_, (std::int64_t a, std::int64_t b), (a, b), {
  return rearrange("swapaxes_", *this, [&](const Tensor& x) { return x.transpose(a, b); });
})
BRAID_IN_PLACE(swapdims_, (std::int64_t a, std::int64_t b), (a, b), {
  return rearrange("swapdims_", *this, [&](const Tensor& x) { return x.transpose(a, b); });
})
BRAID_IN_PLACE(fill_diagonal_, (const Scalar& value), (value), {
  ops::check_in_place("fill_diagonal_", *this, {});
  if (dim() != 2) throw ShapeError(str("fill_diagonal_: expected a matrix, got shape ", shape()));
  return masked_fill_(eye(size(0), size(1), {.device = device(), .dtype = DType::bool_}), value);
})
#undef BRAID_IN_PLACE

const Tensor& Tensor::detach_() const {
  TensorImpl& impl = detail::defined(impl_);
  if (is_view(*this))
    throw AutogradError("detach_: expected a tensor that is no view, got one; use detach()");
  impl.grad_fn = {};
  impl.requires_grad = false;
  return *this;
}
const Tensor& Tensor::set_requires_grad(bool on) const { return requires_grad_(on); }

Tensor Tensor::new_empty(const Shape& shape, const TensorOptions& options) const {
  return empty(shape, detail::like(*this, options));
}
Tensor Tensor::new_zeros(const Shape& shape, const TensorOptions& options) const {
  return zeros(shape, detail::like(*this, options));
}
Tensor Tensor::new_ones(const Shape& shape, const TensorOptions& options) const {
  return ones(shape, detail::like(*this, options));
}
Tensor Tensor::new_full(const Shape& shape, const Scalar& value,
                        const TensorOptions& options) const {
  return full(shape, value, detail::like(*this, options));
}

}  // namespace braid
