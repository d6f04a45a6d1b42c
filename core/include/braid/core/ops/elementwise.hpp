#pragma once
#include <concepts>

#include <braid/core/tensor.hpp>

// Elementwise operations. Shapes broadcast (sizes equal, or 1, or absent on the left); two dtypes are promoted (braid::promote); two devices are a DeviceError.
// Gradients are summed over broadcast dims. Ops that need floating point convert integers to float32.
// A number beside an integer tensor: a whole one that fits in int64 is taken as an integer and wraps around in the tensor's type (uint8 1 + 300 = 45, as in
// PyTorch; also where it is written 300.0); any other one makes the tensor float32, or, where it is only compared with, float64.
namespace braid {

[[nodiscard]] Tensor add(
    const Tensor& a, const Tensor& b,
    double alpha = 1);  ///< a + alpha b. Throws DTypeError for integers with an alpha that is not whole; bool + bool is "or", whatever alpha is
[[nodiscard]] Tensor sub(const Tensor& a, const Tensor& b, double alpha = 1);  ///< a - alpha b. Throws DTypeError for bool, and as add
[[nodiscard]] Tensor mul(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor div(const Tensor& a, const Tensor& b);      ///< true division: integers give float32
[[nodiscard]] Tensor maximum(const Tensor& a, const Tensor& b);  ///< NaN propagates; equal values share the gradient half and half
[[nodiscard]] Tensor minimum(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);  ///< condition is bool; no gradient to it

[[nodiscard]] Tensor add(const Tensor& a, double b);
[[nodiscard]] Tensor sub(const Tensor& a, double b);
[[nodiscard]] Tensor sub(double a, const Tensor& b);
[[nodiscard]] Tensor mul(const Tensor& a, double b);
[[nodiscard]] Tensor div(const Tensor& a, double b);
[[nodiscard]] Tensor div(double a, const Tensor& b);

[[nodiscard]] inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
[[nodiscard]] inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
[[nodiscard]] inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
[[nodiscard]] inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
[[nodiscard]] inline Tensor operator-(const Tensor& a, double b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
[[nodiscard]] inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
[[nodiscard]] inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }
[[nodiscard]] inline Tensor operator-(double a, const Tensor& b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }
[[nodiscard]] inline Tensor operator/(double a, const Tensor& b) { return div(a, b); }

/// Comparisons give bool and have no gradient.
[[nodiscard]] Tensor eq(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor ne(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor lt(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor le(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor gt(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor ge(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor eq(const Tensor& a, double b);
[[nodiscard]] Tensor gt(const Tensor& a, double b);
[[nodiscard]] Tensor lt(const Tensor& a, double b);

[[nodiscard]] Tensor neg(const Tensor& x);
[[nodiscard]] inline Tensor operator-(const Tensor& x) { return neg(x); }
[[nodiscard]] Tensor abs(const Tensor& x);   ///< gradient sign(x), 0 at 0
[[nodiscard]] Tensor sign(const Tensor& x);  ///< gradient 0
[[nodiscard]] Tensor relu(const Tensor& x);  ///< max(x, 0); no gradient where y <= 0; NaN stays NaN, and its gradient passes
[[nodiscard]] Tensor exp(const Tensor& x);
[[nodiscard]] Tensor log(const Tensor& x);
[[nodiscard]] Tensor sqrt(const Tensor& x);
[[nodiscard]] Tensor rsqrt(const Tensor& x);
[[nodiscard]] Tensor reciprocal(const Tensor& x);
[[nodiscard]] Tensor square(const Tensor& x);
[[nodiscard]] Tensor pow(const Tensor& x, double exponent);
[[nodiscard]] Tensor tanh(const Tensor& x);
[[nodiscard]] Tensor sigmoid(const Tensor& x);
[[nodiscard]] Tensor sin(const Tensor& x);
[[nodiscard]] Tensor cos(const Tensor& x);

/// |a - b| <= atol + rtol |b| everywhere (and equal shapes). An infinity is close to itself only, NaN to nothing. Throws DeviceError for two devices.
[[nodiscard]] bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8);
/// Same shape, dtype and elements (NaN differs from itself).
[[nodiscard]] bool equal(const Tensor& a, const Tensor& b);

}  // namespace braid
