#pragma once
#include <braid/core/tensor.hpp>

// Running results along a dim. Everything floating is computed in float64 and rounded once; the
// order is fixed, whatever the number of threads.
namespace braid {

/// y_j = x_0 + … + x_j along dim.
///
/// Shapes    any; a scalar is its own sum
/// Types     floating point; integers and bool give int64, which wraps around
/// Errors    a long float64 sum: (32 + n / 1000) u Σ|x|; other types: the rounding of the result
/// Gradient  the sums of dy from the end on
/// Throws    IndexError for a wrong dim
[[nodiscard]] Tensor cumsum(const Tensor& x, std::int64_t dim);

/// y_j = x_0 x_1 … x_j along dim. Shapes and types as cumsum.
///
/// Gradient  dx_k = (Π_{i<k} x_i) s_k with s_k = dy_k + x_{k+1} s_{k+1}: right where x is 0 too,
///           and in time n. (Beside infinities and NaN PyTorch's is NaN in more places.)
/// Throws    IndexError for a wrong dim
[[nodiscard]] Tensor cumprod(const Tensor& x, std::int64_t dim);

/// Product over the dims; none: over all. Integers and bool give int64. Of nothing: 1. Computed as
/// the last of cumprod's, so it takes as much memory as x for a while.
/// Gradient that of cumprod: right where x is 0. Throws IndexError, ShapeError for a dim named
/// twice.
[[nodiscard]] Tensor prod(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

}  // namespace braid
