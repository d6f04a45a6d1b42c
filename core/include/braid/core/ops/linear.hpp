#pragma once
#include <braid/core/ops/matmul.hpp>

namespace braid {

/// Returns y = x weightᵀ + bias.
///
/// Shapes    x [.., in], weight [out, in], bias [out] or undefined → y [.., out]
/// Gradient  dx = dy weight, dweight = dyᵀ x, dbias = Σ_rows dy
/// Throws    ShapeError, DTypeError, DeviceError as matmul
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// Returns relu(linear(x, weight, bias)), computed in one pass: values below 0 are never written to
/// memory.
///
/// Shapes    as linear
/// Gradient  that of linear; dy counts as 0 except where y > 0
/// Throws    as linear
[[nodiscard]] Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace braid
