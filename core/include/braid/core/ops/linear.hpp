#pragma once
#include <braid/core/tensor.hpp>

namespace braid {

/// Matrix product.
/// Shapes    [m, k] × [k, n] → [m, n]; a vector counts as a row (left) or a column (right), and
///           that dim is dropped again; further leading dims are batches and broadcast
/// Types     one dtype for both, not bool or uint8 (else DTypeError); float16 and bfloat16
///           accumulate in float32
/// Gradient  da = dc bᵀ, db = aᵀ dc, summed over broadcast batches
/// Throws    ShapeError `matmul: inner dimensions differ: expected b.shape[0] == 3 (a is [2, 3]),
///           got b [4, 5]`; DeviceError; DTypeError
[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b);

/// The product of two matrices, [m, k] × [k, n] → [m, n]. ShapeError for other ranks; else as
/// matmul.
[[nodiscard]] Tensor mm(const Tensor& a, const Tensor& b);
/// The products of two batches of matrices, [b, m, k] × [b, k, n] → [b, m, n], without
/// broadcasting; else as matmul.
[[nodiscard]] Tensor bmm(const Tensor& a, const Tensor& b);
/// Matrix times vector, [m, k] × [k] → [m]; else as matmul.
[[nodiscard]] Tensor mv(const Tensor& a, const Tensor& b);
/// Σ a_i b_i of two vectors of one size, a scalar; else as matmul.
[[nodiscard]] Tensor dot(const Tensor& a, const Tensor& b);
/// The outer product a_i b_j of two vectors, [m] and [n] → [m, n]. Dtypes are promoted as in mul.
[[nodiscard]] Tensor outer(const Tensor& a, const Tensor& b);

/// Sums of products over the last `dims` dims of a and the first `dims` of b, paired in order. For
/// two matrices, tensordot(a, b, 1) is their product and tensordot(a, b, 0) the outer product.
///
/// Shapes    a [.., k1, k2], b [k1, k2, ..] → the other dims of a, then those of b; a size of 1 in
///           a summed dim broadcasts, as in PyTorch
/// Types     as matmul
/// Gradient  as matmul
/// Throws    ArgumentError for negative dims; IndexError, ShapeError, DTypeError, DeviceError
[[nodiscard]] Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t dims = 2);
/// The same over dims_a of a and dims_b of b, paired in order. Throws ArgumentError if the lists
/// differ in length or name a dim twice.
[[nodiscard]] Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& dims_a,
                               const Shape& dims_b);

/// y = x weightᵀ + bias.
/// Shapes    x [.., in], weight [out, in], bias [out] or undefined → y [.., out]
/// Gradient  dx = dy weight, dweight = dyᵀ x, dbias = Σ_rows dy
/// Throws    ShapeError, DTypeError, DeviceError as matmul
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// relu(linear(x, weight, bias)) in one pass: values below 0 are never written to memory.
/// Shapes    as linear
/// Gradient  that of linear, with dy where y > 0 and 0 elsewhere
/// Throws    as linear
[[nodiscard]] Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace braid
