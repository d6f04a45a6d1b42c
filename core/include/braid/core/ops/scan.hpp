#pragma once
#include <braid/core/tensor.hpp>

// Cumulative sums and products along a dim. Floating-point values are computed in float64 and
// rounded once. The order is fixed, whatever the number of threads.
namespace braid {

/// y_j = x_0 + … + x_j along dim.
///
/// Shapes    any; a scalar counts as one element
/// Types     floating point; integers and bool give int64, which wraps around
/// Accuracy  float64: an error of at most (32 + n / 1000) u Σ|x| for long sums; other dtypes: the
///           rounding of the result
/// Gradient  the cumulative sums of dy, from the end
/// Throws    IndexError for an invalid dim
[[nodiscard]] Tensor cumsum(const Tensor& x, std::int64_t dim);

/// y_j = x_0 x_1 … x_j along dim. Shapes and types as cumsum.
///
/// Gradient  dx_k = (Π_{i<k} x_i) s_k with s_k = dy_k + x_{k+1} s_{k+1}: correct where x is 0 too,
///           and in time O(n). (With infinities and NaN, PyTorch's is NaN in more places.)
/// Throws    IndexError for an invalid dim
[[nodiscard]] Tensor cumprod(const Tensor& x, std::int64_t dim);

/// The product over the dims; empty `dims` means all. Integers and bool give int64. The product of
/// nothing is 1. It is computed as the last element of cumprod, so it temporarily uses as much
/// memory as x. Gradient: that of cumprod, correct where x is 0. Throws IndexError, ShapeError for
/// a dim named twice.
[[nodiscard]] Tensor prod(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

}  // namespace braid
