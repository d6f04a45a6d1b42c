#pragma once
#include <concepts>
#include <optional>

#include <braid/core/tensor.hpp>

// Elementwise operations. Shapes broadcast (sizes equal, or 1, or missing on the left). Two dtypes
// are promoted (braid::promote). Tensors on two devices throw DeviceError. Gradients are summed
// over broadcast dims. Ops that need floating point convert integers to float32.
// A number (Scalar) with an integer tensor: an integer is exact and wraps around in the tensor's
// dtype (uint8 1 + 300 = 45, as in PyTorch); a floating-point number, even 300.0, gives float32.
// Comparisons compare the exact numbers, whatever their types.
namespace braid {

[[nodiscard]] Tensor add(
    const Tensor& a, const Tensor& b,
    /// a + alpha b. Throws DTypeError for integers with a fractional alpha. bool + bool is logical
    /// or, whatever alpha is
    const Scalar& alpha = 1);
/// a - alpha b. Throws DTypeError for bool, and as add.
[[nodiscard]] Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
[[nodiscard]] Tensor mul(const Tensor& a, const Tensor& b);
/// True division: integers give float32.
[[nodiscard]] Tensor div(const Tensor& a, const Tensor& b);
/// NaN propagates. Where a and b are equal, each gets half of the gradient.
[[nodiscard]] Tensor maximum(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor minimum(const Tensor& a, const Tensor& b);
/// condition must be bool; it gets no gradient.
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
/// The dtype is that of the tensor combined with the number (braid::promote).
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b);
/// float32 if one of them is floating point, else int64, or bool for two bools.
[[nodiscard]] Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b);

/// x with `value` where the mask is true, of x's dtype. mask: bool, broadcasts with x. value: a
/// number that x's dtype can hold (as for full), or a tensor of rank 0 on x's device, which is
/// converted to x's dtype. Gradients: dy where the mask is false; to a tensor value, the sum of dy
/// where the mask is true. Throws DTypeError for a mask that is not bool, or a floating-point value
/// for an integer x; ShapeError; DeviceError.
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value);
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);

/// min(max(x, min), max). Either bound may be missing (std::nullopt). Where min > max the result is
/// max. NaN stays NaN; a NaN bound makes the whole result NaN. The gradient passes where
/// min < x < max, and is 0 elsewhere; an infinite bound does not limit it. With an integer x, the
/// dtype is promote(dtype, bound), but an infinite bound does not change it; a bound outside the
/// range of an integer dtype counts as the nearest end of that range. Throws ArgumentError if both
/// are missing, DTypeError for bool.
[[nodiscard]] Tensor clamp(const Tensor& x, const std::optional<Scalar>& min,
                           const std::optional<Scalar>& max = {});
/// The same with tensors as bounds, which broadcast with x and are promoted with it; an undefined
/// tensor is no bound. Where the result is a bound, that bound gets the gradient. Where x equals
/// one of two different bounds, or the only one, x and the bound get half each. Throws
/// ArgumentError if both bounds are undefined, DTypeError for bool.
[[nodiscard]] Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max);

[[nodiscard]] Tensor add(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor sub(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor sub(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor mul(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor div(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor div(const Scalar& a, const Tensor& b);

[[nodiscard]] inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
[[nodiscard]] inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
[[nodiscard]] inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
[[nodiscard]] inline Tensor operator+(const Tensor& a, const Scalar& b) { return add(a, b); }
[[nodiscard]] inline Tensor operator-(const Tensor& a, const Scalar& b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(const Tensor& a, const Scalar& b) { return mul(a, b); }
[[nodiscard]] inline Tensor operator/(const Tensor& a, const Scalar& b) { return div(a, b); }
[[nodiscard]] inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
[[nodiscard]] inline Tensor operator-(const Scalar& a, const Tensor& b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
[[nodiscard]] inline Tensor operator/(const Scalar& a, const Tensor& b) { return div(a, b); }

/// Comparisons return bool and have no gradient.
[[nodiscard]] Tensor eq(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor ne(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor lt(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor le(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor gt(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor ge(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor eq(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor ne(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor lt(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor le(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor gt(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor ge(const Tensor& a, const Scalar& b);
[[nodiscard]] inline Tensor eq(const Scalar& a, const Tensor& b) { return eq(b, a); }
[[nodiscard]] inline Tensor ne(const Scalar& a, const Tensor& b) { return ne(b, a); }
[[nodiscard]] inline Tensor lt(const Scalar& a, const Tensor& b) { return gt(b, a); }
[[nodiscard]] inline Tensor le(const Scalar& a, const Tensor& b) { return ge(b, a); }
[[nodiscard]] inline Tensor gt(const Scalar& a, const Tensor& b) { return lt(b, a); }
[[nodiscard]] inline Tensor ge(const Scalar& a, const Tensor& b) { return le(b, a); }

/// The logical ops accept any dtype: 0 is false, everything else (also NaN) is true. They return
/// bool and have no gradient.
[[nodiscard]] Tensor logical_and(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor logical_or(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor logical_xor(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor logical_not(const Tensor& x);
/// isnan, isinf and isfinite return bool and have no gradient; integers and bools are finite.
[[nodiscard]] Tensor isnan(const Tensor& x);
[[nodiscard]] Tensor isinf(const Tensor& x);
[[nodiscard]] Tensor isfinite(const Tensor& x);

[[nodiscard]] Tensor neg(const Tensor& x);
[[nodiscard]] inline Tensor operator-(const Tensor& x) { return neg(x); }
/// Gradient sign(x): 0 at 0, NaN at NaN (PyTorch: 0).
[[nodiscard]] Tensor abs(const Tensor& x);
[[nodiscard]] Tensor sign(const Tensor& x);  ///< NaN for NaN (PyTorch: 0); gradient 0
/// max(x, 0), also 0 for -0 (PyTorch: -0). No gradient where y <= 0. NaN stays NaN, and its
/// gradient passes.
[[nodiscard]] Tensor relu(const Tensor& x);
[[nodiscard]] Tensor exp(const Tensor& x);
[[nodiscard]] Tensor log(const Tensor& x);
[[nodiscard]] Tensor sqrt(const Tensor& x);
[[nodiscard]] Tensor rsqrt(const Tensor& x);
[[nodiscard]] Tensor reciprocal(const Tensor& x);
[[nodiscard]] Tensor square(const Tensor& x);
/// x^exponent. An integer x with an integer exponent stays integer and wraps around; a negative
/// exponent then throws ArgumentError. All else is floating point.
[[nodiscard]] Tensor pow(const Tensor& x, const Scalar& exponent);
/// a^b, as C's pow for all special values. Integers stay integers and wrap around; for them a
/// negative power is 0, except of 1 and -1. Throws DTypeError for bool. Gradients: b a^(b-1), 0
/// where b is 0; and a^b log(a), 0 where a is 0 and b >= 0.
[[nodiscard]] Tensor pow(const Tensor& a, const Tensor& b);
/// The dtype is that of the tensor b combined with the number a (braid::promote); integers as
/// above.
[[nodiscard]] Tensor pow(const Scalar& a, const Tensor& b);
/// The angle of the point x = b, y = a, in [-π, π]. Gradients: b / (a² + b²) and -a / (a² + b²), 0
/// at the origin.
[[nodiscard]] Tensor atan2(const Tensor& a, const Tensor& b);
/// a - b trunc(a / b), exact, with the sign of a. Gradients: 1 and -trunc(a / b). Throws
/// ArgumentError for an integer divisor of 0, DTypeError for bool.
[[nodiscard]] Tensor fmod(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor fmod(const Tensor& a, const Scalar& b);
/// a - b floor(a / b), with the sign of b, as Python's %. Gradients: 1 and -floor(a / b). Throws as
/// fmod.
[[nodiscard]] Tensor remainder(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor remainder(const Tensor& a, const Scalar& b);
/// floor(a / b) of the exact quotient; integers stay integers. Gradients 0 (PyTorch has none).
/// Throws as fmod.
[[nodiscard]] Tensor floor_divide(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor floor_divide(const Tensor& a, const Scalar& b);
/// a log(b); 0 where a is 0 and b is not NaN. Gradients: log(b), 0 where a is 0 and b <= 0; and
/// a / b.
[[nodiscard]] Tensor xlogy(const Tensor& a, const Tensor& b);
/// a + weight (b - a); exactly b at weight 1. Floating point only; all three broadcast. Gradients:
/// 1 - weight, weight and b - a.
[[nodiscard]] Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
[[nodiscard]] Tensor lerp(const Tensor& a, const Tensor& b, double weight);
/// addcmul: x + value a b. addcdiv: x + value a / b, by true division: integers give float32
/// (PyTorch refuses them). All three tensors broadcast.
[[nodiscard]] Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b,
                             const Scalar& value = 1);
[[nodiscard]] Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b,
                             const Scalar& value = 1);
[[nodiscard]] Tensor tanh(const Tensor& x);
[[nodiscard]] Tensor sigmoid(const Tensor& x);
[[nodiscard]] Tensor sin(const Tensor& x);
[[nodiscard]] Tensor cos(const Tensor& x);
[[nodiscard]] Tensor tan(const Tensor& x);
[[nodiscard]] Tensor exp2(const Tensor& x);   ///< 2^x
[[nodiscard]] Tensor expm1(const Tensor& x);  ///< e^x - 1, accurate for small x too
[[nodiscard]] Tensor log1p(const Tensor& x);  ///< log(1 + x), accurate for small x too
[[nodiscard]] Tensor log2(const Tensor& x);
[[nodiscard]] Tensor log10(const Tensor& x);
[[nodiscard]] Tensor asin(const Tensor& x);  ///< NaN outside [-1, 1]; acos too
[[nodiscard]] Tensor acos(const Tensor& x);
[[nodiscard]] Tensor atan(const Tensor& x);
[[nodiscard]] Tensor sinh(const Tensor& x);
[[nodiscard]] Tensor cosh(const Tensor& x);
[[nodiscard]] Tensor asinh(const Tensor& x);
[[nodiscard]] Tensor acosh(const Tensor& x);  ///< NaN below 1
[[nodiscard]] Tensor atanh(const Tensor& x);  ///< NaN outside [-1, 1]
[[nodiscard]] Tensor erf(const Tensor& x);    ///< 2/√π ∫₀ˣ e^-t² dt
[[nodiscard]] Tensor erfc(const Tensor& x);   ///< 1 - erf(x), accurate for large x too
/// floor, ceil, round and trunc return whole numbers in x's dtype; for integers a copy. Gradient 0.
/// Throws DTypeError for bool.
[[nodiscard]] Tensor floor(const Tensor& x);
[[nodiscard]] Tensor ceil(const Tensor& x);
[[nodiscard]] Tensor round(const Tensor& x);  ///< halves to the even neighbour
[[nodiscard]] Tensor trunc(const Tensor& x);  ///< towards 0
/// x - trunc(x), with the sign of x; gradient 1. Throws DTypeError unless x is floating point.
[[nodiscard]] Tensor frac(const Tensor& x);

/// True if the shapes are equal and |a - b| <= atol + rtol |b| for all elements. An infinity is
/// close only to itself, NaN to nothing. Throws DeviceError for two devices.
[[nodiscard]] bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
                            double atol = 1e-8);
/// True if shapes, dtypes and elements are equal (NaN differs from itself). Throws DeviceError for
/// two devices.
[[nodiscard]] bool equal(const Tensor& a, const Tensor& b);

}  // namespace braid
