#pragma once
#include <braid/core/tensor.hpp>

// Weighted sums of three tensors. Broadcasting and promotion are as in binary.hpp.
namespace braid {

/// a + weight (b - a); exactly b at weight 1. Floating point only; all three broadcast.
///
/// Gradient  1 - weight, weight and b - a
[[nodiscard]] Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
[[nodiscard]] Tensor lerp(const Tensor& a, const Tensor& b, double weight);
/// addcmul: x + value a b. addcdiv: x + value a / b, by true division: integers give float32
/// (PyTorch refuses them). All three tensors broadcast.
[[nodiscard]] Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b,
                             const Scalar& value = 1);
[[nodiscard]] Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b,
                             const Scalar& value = 1);

}  // namespace braid
