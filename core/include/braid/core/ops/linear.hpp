#pragma once
#include <string_view>

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

/// Returns gelu(linear(x, weight, bias), approximate), as one op: one pass where Braid's own
/// kernels compute it on CUDA. The gradient needs the result of linear, which the same pass writes.
///
/// Shapes    as linear; floating point only
/// Gradient  that of linear for dy gelu'(linear(x, weight, bias))
/// Throws    as linear; DTypeError for integers; ArgumentError unless approximate is "none" or
///           "tanh"
[[nodiscard]] Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                 std::string_view approximate = "none");

/// Returns linear(x, weight, bias) + residual, as at the end of a residual block, as one op: one
/// pass where Braid's own kernels compute it on CUDA. bias may be undefined. float16 and bfloat16
/// are rounded once, where linear and + round twice; cuBLAS also rounds bias + residual.
///
///     const Tensor h = linear_add(y, w, bias, x);  // x + linear(y, w, bias)
///
/// Shapes    as linear; residual as the result
/// Gradient  that of linear; dresidual = dy
/// Throws    as linear; also for the residual
[[nodiscard]] Tensor linear_add(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                const Tensor& residual);

}  // namespace braid
