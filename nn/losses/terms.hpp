#pragma once
// What the losses share: checks, and the two ways to join their terms.
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/ops/activations.hpp>
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
/// float16 could not count far.
[[nodiscard]] inline LossSum counted(const Tensor& terms) {
  const DType wide = size_of(terms.dtype()) == 2 ? DType::float32 : terms.dtype();
  return {sum(terms),
          full({}, static_cast<double>(terms.numel()), {.device = terms.device(), .dtype = wide})};
}

inline void check_floating(const char* op, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw DTypeError(str(op, ": expected a floating point tensor, got ", x.dtype()));
}
/// `what` has x's dtype and device.
inline void check_alike(const char* op, const char* what, const Tensor& x, const Tensor& other) {
  if (other.device() != x.device())
    throw DeviceError(str(op, ": expected ", what, " on ", x.device(), ", got ", other.device()));
  if (other.dtype() != x.dtype())
    throw DTypeError(str(op, ": expected ", what, " to be ", x.dtype(), ", got ", other.dtype()));
}
/// x is floating point, and `what` has its shape, dtype and device.
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
/// The weight, where there is one, with x's dtype and device and a shape that broadcasts to x's.
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

/// A number of x's dtype, on its device.
[[nodiscard]] inline Tensor number(const Tensor& x, double value) {
  return full({}, value, {.device = x.device(), .dtype = x.dtype()});
}

/// log(1 + e^x) of all types' full accuracy: above 40 it is x even in float64.
[[nodiscard]] inline Tensor log1p_exp(const Tensor& x) { return softplus(x, 1, 40); }

}  // namespace braid::nn::detail
