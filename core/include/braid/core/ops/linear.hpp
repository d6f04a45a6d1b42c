#pragma once
#include <braid/core/ops/matmul.hpp>

namespace braid {

/// y = x weightᵀ + bias.
///
/// Shapes    x [.., in], weight [out, in], bias [out] or undefined → y [.., out]
/// Gradient  dx = dy weight, dweight = dyᵀ x, dbias = Σ_rows dy
/// Throws    ShapeError, DTypeError, DeviceError as matmul
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// relu(linear(x, weight, bias)) in one pass: values below 0 are never written to memory.
///
/// Shapes    as linear
/// Gradient  that of linear, with dy where y > 0 and 0 elsewhere
/// Throws    as linear
[[nodiscard]] Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace braid
