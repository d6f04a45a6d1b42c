#pragma once
// Helpers of the losses: checks, and the two ways to reduce their terms.
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/nn/losses.hpp>

namespace braid::nn::detail {

[[nodiscard]] inline Tensor joined(const Tensor& terms, Reduction reduction) {
  return reduction == Reduction::none  ? terms
         : reduction == Reduction::sum ? sum(terms)
                                       : mean(terms);
}
/// Returns the sum and the count of the terms. The count is float32 for 16-bit dtypes, because
/// float16 cannot represent large counts.
[[nodiscard]] inline LossSum counted(const Tensor& terms) {
  const DType wide = size_of(terms.dtype()) == 2 ? DType::float32 : terms.dtype();
  return {sum(terms),
          full({}, static_cast<double>(terms.numel()), {.device = terms.device(), .dtype = wide})};
}

inline void check_floating(const char* op, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw DTypeError(str(op, ": expected a floating point tensor, got ", x.dtype()));
}
/// Throws unless `other` has x's dtype and device.
inline void check_alike(const char* op, const char* what, const Tensor& x, const Tensor& other) {
  if (other.device() != x.device())
    throw DeviceError(str(op, ": expected ", what, " on ", x.device(), ", got ", other.device()));
  if (other.dtype() != x.dtype())
    throw DTypeError(str(op, ": expected ", what, " to be ", x.dtype(), ", got ", other.dtype()));
}
/// Throws unless x is floating point and `other` has its shape, dtype and device.
inline void check_same(const char* op, const char* what, const Tensor& x, const Tensor& other) {
  check_floating(op, x);
  check_alike(op, what, x, other);
  if (other.shape() != x.shape())
    throw ShapeError(
        str(op, ": expected ", what, " of shape ", x.shape(), ", got ", other.shape()));
}
inline void check_option(const char* op, const char* what, bool good, double value) {
  if (!good) throw ArgumentError(str(op, ": expected ", what, ", got ", value));
}
/// Throws unless the weight, if defined, has x's dtype and device and broadcasts to x's shape.
inline void check_weight(const char* op, const char* what, const Tensor& x, const Tensor& weight) {
  if (!weight.defined()) return;
  check_alike(op, what, x, weight);
  bool fits = weight.dim() <= x.dim();
  for (int d = 1; fits && d <= weight.dim(); ++d)
    fits = weight.size(-d) == 1 || weight.size(-d) == x.size(-d);
  if (!fits)
    throw ShapeError(
        str(op, ": expected ", what, " that broadcasts to ", x.shape(), ", got ", weight.shape()));
}

/// A scalar tensor of x's dtype, on its device.
[[nodiscard]] inline Tensor number(const Tensor& x, double value) {
  return full({}, value, {.device = x.device(), .dtype = x.dtype()});
}

/// log(1 + e^x), accurate for all dtypes: above 40 it equals x even in float64.
[[nodiscard]] inline Tensor log1p_exp(const Tensor& x) { return softplus(x, 1, 40); }

}  // namespace braid::nn::detail
