#pragma once
#include <braid/core/tensor.hpp>

// Elementwise functions of two tensors, or of a tensor and a number. Shapes broadcast (sizes equal,
// or 1, or missing on the left). Two dtypes are promoted (braid::promote). Tensors on two devices
// throw DeviceError; but a CPU tensor without dims may be beside tensors of a GPU, and is copied
// there. Gradients are summed over broadcast dims. Ops that need floating point convert integers to
// float32.
// A number (Scalar) with an integer tensor: an integer is exact and wraps around in the tensor's
// dtype (uint8 1 + 300 = 45, as in PyTorch); a floating-point number, even 300.0, gives float32.
namespace braid {

/// a + alpha b. bool + bool is logical or, whatever alpha is. The operator + is the same.
///
/// Gradient  dy and alpha dy
/// Throws    DTypeError for integers with a fractional alpha
///
///     const Tensor a = ones({3, 1}), b = arange(4);
///     const Tensor c = a + 2 * b;  // float32 [3, 4]: both broadcast, the dtypes are promoted
///     add(a, b, 2);                // the same in one pass
[[nodiscard]] Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
/// a - alpha b.
///
/// Throws    DTypeError for bool, and as add
[[nodiscard]] Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
/// a b. bool × bool is logical and.
///
/// Gradient  b dy and a dy
[[nodiscard]] Tensor mul(const Tensor& a, const Tensor& b);
/// a / b, true division: integers give float32.
///
/// Gradient  dy / b and -dy a / b²
[[nodiscard]] Tensor div(const Tensor& a, const Tensor& b);
/// The larger of a and b, and the smaller; NaN propagates.
///
/// Gradient  to the one that was chosen; where a and b are equal, each gets half
[[nodiscard]] Tensor maximum(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor minimum(const Tensor& a, const Tensor& b);
[[nodiscard]] inline Tensor max(const Tensor& a, const Tensor& b) { return maximum(a, b); }
[[nodiscard]] inline Tensor min(const Tensor& a, const Tensor& b) { return minimum(a, b); }

/// The same with a number, whose kind decides the dtype: see above.
[[nodiscard]] Tensor add(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor sub(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor sub(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor mul(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor div(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor div(const Scalar& a, const Tensor& b);

/// The operators call add, sub, mul and div.
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

/// a^b, as C's pow for all special values. Integers stay integers and wrap around; for them a
/// negative power is 0, except of 1 and -1.
///
/// Gradient  b a^(b-1), 0 where b is 0; and a^b log(a), 0 where a is 0 and b >= 0
/// Throws    DTypeError for bool
[[nodiscard]] Tensor pow(const Tensor& a, const Tensor& b);
/// The dtype is that of the tensor b combined with the number a (braid::promote); integers as
/// above.
[[nodiscard]] Tensor pow(const Scalar& a, const Tensor& b);
/// The angle of the point x = b, y = a, in [-π, π].
///
/// Gradient  b / (a² + b²) and -a / (a² + b²), 0 at the origin
[[nodiscard]] Tensor atan2(const Tensor& a, const Tensor& b);
/// a - b trunc(a / b), exact, with the sign of a.
///
/// Gradient  1 and -trunc(a / b)
/// Throws    ArgumentError for an integer divisor of 0; DTypeError for bool with bool
[[nodiscard]] Tensor fmod(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor fmod(const Tensor& a, const Scalar& b);
/// a - b floor(a / b), with the sign of b, as Python's %. The operator % is the same.
///
/// Gradient  1 and -floor(a / b)
/// Throws    as fmod
[[nodiscard]] Tensor remainder(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor remainder(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor remainder(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator%(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator%(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator%(const Scalar& a, const Tensor& b);
/// floor(a / b) of the exact quotient; integers stay integers.
///
/// Gradient  0 (PyTorch has none)
/// Throws    as fmod
[[nodiscard]] Tensor floor_divide(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor floor_divide(const Tensor& a, const Scalar& b);
/// a log(b); 0 where a is 0 and b is not NaN.
///
/// Gradient  log(b), 0 where a is 0 and b <= 0; and a / b
[[nodiscard]] Tensor xlogy(const Tensor& a, const Tensor& b);

}  // namespace braid
