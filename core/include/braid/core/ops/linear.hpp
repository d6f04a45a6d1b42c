#pragma once
#include <braid/core/tensor.hpp>

namespace braid {

/// Matrix product.
/// Shapes    [m, k] × [k, n] → [m, n]; a vector on either side is a row or column that is dropped again; further leading dims are batches and broadcast
/// Types     one dtype for both (else DTypeError); float16 and bfloat16 accumulate in float32
/// Gradient  da = dc bᵀ, db = aᵀ dc, summed over broadcast batches
/// Throws    ShapeError `matmul: inner dimensions differ: expected b.shape[0] == 3 (a is [2, 3]), got b [4, 5]`; DeviceError; DTypeError
[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b);

/// y = x weightᵀ + bias.
/// Shapes    x [.., in], weight [out, in], bias [out] or undefined → y [.., out]
/// Gradient  dx = dy weight, dweight = dyᵀ x, dbias = Σ_rows dy
/// Throws    ShapeError, DTypeError, DeviceError as matmul
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// relu(linear(x, weight, bias)) in one pass: what lies below zero never reaches memory.
/// Shapes    as linear
/// Gradient  as linear's of dy where y > 0, else of 0
/// Throws    as linear
[[nodiscard]] Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace braid
