#pragma once
#include <optional>

#include <braid/core/tensor.hpp>

// Elements chosen by a mask, and elements limited by bounds. Broadcasting and promotion are as in
// binary.hpp.
namespace braid {

/// Returns a where the condition is true, and b elsewhere. The condition must be bool, and gets no
/// gradient.
///
/// Throws    DTypeError for a condition that is not bool; ShapeError; DeviceError
///
///     where(gt(x, 0), x, 0.1 * x);
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
/// The same with a number. The dtype is that of the tensor promoted with the number
/// (braid::promote).
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b);
/// The same with two numbers. The dtype is bool for two bools, else int64 for two integers or
/// bools, else float32.
[[nodiscard]] Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b);

/// Returns `value` where the mask is true, and x elsewhere, in x's dtype. The mask is bool and
/// broadcasts with x. The value is a number that x's dtype can hold (as for full), or a tensor of
/// rank 0 on x's device, which is converted to x's dtype.
///
/// Gradient  dy where the mask is false; a tensor value gets the sum of dy where the mask is true
/// Throws    DTypeError for a mask that is not bool, for a number that x's dtype cannot hold, and
///           for a floating-point tensor value unless x is floating point; ShapeError; DeviceError
///
///     masked_fill(x, isnan(x), 0);
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value);
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);

/// Returns min(max(x, min), max). Either bound may be missing (std::nullopt). If min > max, the
/// result is max. NaN stays NaN. A NaN bound makes the whole result NaN.
///
/// Types     the dtype is x's promoted with the bounds, except that an infinite bound does not
///           change it. A bound outside the range of an integer dtype counts as the nearest end of
///           the range
/// Gradient  dy where min < x < max, 0 elsewhere; an infinite bound does not limit it
/// Throws    ArgumentError if both bounds are missing, DTypeError for bool
///
///     clamp(x, 0, 1);
///     clamp(x, std::nullopt, 1);  // an upper bound only
[[nodiscard]] Tensor clamp(const Tensor& x, const std::optional<Scalar>& min,
                           const std::optional<Scalar>& max = {});
/// The same with tensors as bounds. They broadcast with x and are promoted with it. An undefined
/// tensor is no bound.
///
/// Gradient  to x where x is between the bounds, and to a bound where that bound replaces x. Where
///           x equals one of two different bounds, or the only bound, x and the bound get half each
/// Throws    ArgumentError if both bounds are undefined, DTypeError for bool
[[nodiscard]] Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max);
/// clamp with one bound.
[[nodiscard]] inline Tensor clamp_min(const Tensor& x, const Scalar& min) { return clamp(x, min); }
[[nodiscard]] inline Tensor clamp_max(const Tensor& x, const Scalar& max) {
  return clamp(x, std::nullopt, max);
}
[[nodiscard]] inline Tensor clamp_min(const Tensor& x, const Tensor& min) {
  return clamp(x, min, Tensor());
}
[[nodiscard]] inline Tensor clamp_max(const Tensor& x, const Tensor& max) {
  return clamp(x, Tensor(), max);
}

}  // namespace braid
