#pragma once
#include <optional>

#include <braid/core/tensor.hpp>

// Elements chosen by a mask, and elements limited by bounds. Broadcasting and promotion are as in
// binary.hpp.
namespace braid {

/// condition must be bool; it gets no gradient.
///
///     where(gt(x, 0), x, 0.1 * x);
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
/// The dtype is that of the tensor combined with the number (braid::promote).
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b);
/// float32 if one of them is floating point, else int64, or bool for two bools.
[[nodiscard]] Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b);

/// x with `value` where the mask is true, of x's dtype. mask: bool, broadcasts with x. value: a
/// number that x's dtype can hold (as for full), or a tensor of rank 0 on x's device, which is
/// converted to x's dtype.
///
/// Gradient  dy where the mask is false; to a tensor value, the sum of dy where the mask is true
/// Throws    DTypeError for a mask that is not bool, or a floating-point value for an integer x;
///           ShapeError; DeviceError
///
///     masked_fill(x, isnan(x), 0);
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value);
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);

/// min(max(x, min), max). Either bound may be missing (std::nullopt). Where min > max the result is
/// max. NaN stays NaN; a NaN bound makes the whole result NaN. The gradient passes where min < x
/// < max, and is 0 elsewhere; an infinite bound does not limit it. With an integer x, the dtype is
/// promote(dtype, bound), but an infinite bound does not change it; a bound outside the range of an
/// integer dtype counts as the nearest end of that range.
///
/// Throws    ArgumentError if both are missing, DTypeError for bool
///
///     clamp(x, 0, 1);
///     clamp(x, std::nullopt, 1);  // an upper bound only
[[nodiscard]] Tensor clamp(const Tensor& x, const std::optional<Scalar>& min,
                           const std::optional<Scalar>& max = {});
/// The same with tensors as bounds, which broadcast with x and are promoted with it; an undefined
/// tensor is no bound. Where the result is a bound, that bound gets the gradient. Where x equals
/// one of two different bounds, or the only one, x and the bound get half each.
///
/// Throws    ArgumentError if both bounds are undefined, DTypeError for bool
[[nodiscard]] Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max);

}  // namespace braid
