#pragma once
#include <braid/core/tensor.hpp>

// Elementwise functions of one tensor of any shape. Those that need floating point convert integers
// to float32. Activations are in activation.hpp.
namespace braid {

/// -x.
///
/// Gradient  -dy
/// Throws    DTypeError for bool
[[nodiscard]] Tensor neg(const Tensor& x);
[[nodiscard]] inline Tensor operator-(const Tensor& x) { return neg(x); }
/// x itself, as in PyTorch. Throws DTypeError for bool.
[[nodiscard]] Tensor positive(const Tensor& x);
[[nodiscard]] inline Tensor operator+(const Tensor& x) { return positive(x); }
/// |x|.
///
/// Gradient  sign(x) dy: 0 at 0, NaN at NaN (PyTorch: 0)
[[nodiscard]] Tensor abs(const Tensor& x);
[[nodiscard]] Tensor sign(const Tensor& x);  ///< -1, 0 or 1; NaN for NaN (PyTorch: 0); gradient 0
/// max(x, 0), also 0 for -0 (PyTorch: -0). No gradient where y <= 0. NaN stays NaN, and its
/// gradient passes.
[[nodiscard]] Tensor relu(const Tensor& x);
[[nodiscard]] Tensor exp(const Tensor& x);         ///< e^x
[[nodiscard]] Tensor log(const Tensor& x);         ///< NaN below 0, -inf at 0
[[nodiscard]] Tensor sqrt(const Tensor& x);        ///< NaN below 0
[[nodiscard]] Tensor rsqrt(const Tensor& x);       ///< 1 / √x
[[nodiscard]] Tensor reciprocal(const Tensor& x);  ///< 1 / x
[[nodiscard]] Tensor square(const Tensor& x);      ///< x²; integers stay integers
/// x^exponent. An integer x with an integer exponent stays integer and wraps around; a negative
/// exponent then throws ArgumentError. All else is floating point.
[[nodiscard]] Tensor pow(const Tensor& x, const Scalar& exponent);
[[nodiscard]] Tensor tanh(const Tensor& x);
[[nodiscard]] Tensor sigmoid(const Tensor& x);  ///< 1 / (1 + e^-x)
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
/// floor, ceil, round and trunc return whole numbers in x's dtype; for integers a copy.
///
/// Gradient  0
/// Throws    DTypeError for bool
[[nodiscard]] Tensor floor(const Tensor& x);
[[nodiscard]] Tensor ceil(const Tensor& x);
[[nodiscard]] Tensor round(const Tensor& x);  ///< halves to the even neighbour
[[nodiscard]] Tensor trunc(const Tensor& x);  ///< towards 0
/// x - trunc(x), with the sign of x; gradient 1.
///
/// Throws    DTypeError unless x is floating point
[[nodiscard]] Tensor frac(const Tensor& x);

/// True where x is 0, for any dtype. Returns bool and has no gradient.
[[nodiscard]] Tensor logical_not(const Tensor& x);
[[nodiscard]] inline Tensor operator!(const Tensor& x) { return logical_not(x); }
/// isnan, isinf and isfinite return bool and have no gradient; integers and bools are finite.
[[nodiscard]] Tensor isnan(const Tensor& x);
[[nodiscard]] Tensor isinf(const Tensor& x);
[[nodiscard]] Tensor isfinite(const Tensor& x);

}  // namespace braid
