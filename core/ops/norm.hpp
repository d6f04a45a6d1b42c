#pragma once
// Shared by the normalisations: checks, and the gradient as recorded ops.
#include <braid/core/internal/statistics_type.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/norm.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"

namespace braid::ops {

[[nodiscard]] inline void* data_or_null(const Tensor& t) {
  return t.defined() ? t.id()->data() : nullptr;
}
[[nodiscard]] inline Tensor dense_or_none(const Tensor& t) {
  return t.defined() ? t.contiguous() : t;
}

/// Throws unless the weight or bias is undefined, or has x's device and dtype and the given shape.
inline void check_affine(const char* op, const char* name, const Tensor& x, const Tensor& t,
                         const Shape& shape) {
  if (!t.defined()) return;
  check_device(op, x, t);
  check_dtype(op, x, t);
  if (t.shape() != shape)
    throw ShapeError(
        str(op, ": expected ", name, " ", shape, " for x ", x.shape(), ", got ", t.shape()));
}
inline void check_eps(const char* op, double eps) {
  if (!(eps >= 0)) throw ArgumentError(str(op, ": expected eps >= 0, got ", eps));
}

/// How x is viewed: its shape, the dims that statistics are computed over, and the shape of weight
/// and bias that broadcasts to it.
struct NormView {
  Shape shape, dims, affine;
  bool center;
  double eps;
};

/// Returns dx, dweight and dbias, computed with recorded ops. parameters: the shape of weight and
/// bias.
inline Grads composed_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& dy,
                                    const NormView& view, const Shape& parameters, Needs needs) {
  const DType t = statistics_type(x.dtype());
  const Tensor v = x.to(t).reshape(view.shape), d = dy.to(t).reshape(view.shape);
  const Tensor away = view.center ? v - mean(v, view.dims, true) : v;
  const Tensor rstd = rsqrt(mean(square(away), view.dims, true) + view.eps), h = away * rstd;
  Tensor dx, dweight, dbias;
  if (needs[0]) {
    const Tensor g = weight.defined() ? d * weight.to(t).reshape(view.affine) : d;
    Tensor rest = h * mean(g * h, view.dims, true);
    if (view.center) rest = rest + mean(g, view.dims, true);
    dx = ((g - rest) * rstd).reshape(x.shape()).to(x.dtype());
  }
  if (needs[1]) dweight = sum_to(d * h, view.affine).reshape(parameters).to(x.dtype());
  if (needs[2]) dbias = sum_to(d, view.affine).reshape(parameters).to(x.dtype());
  return {dx, dweight, dbias};
}

}  // namespace braid::ops
