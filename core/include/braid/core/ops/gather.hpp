#pragma once
#include <braid/core/tensor.hpp>

// Elements by index. Indices are int64 tensors with values in [0, size). Others throw IndexError:
// on the CPU before anything is written, on CUDA when the host next waits for the device. Where
// several indices are equal, sums are added in the order of the index, each rounded; on CUDA those
// of long lines in another fixed order, rounded once. There are no atomics, so the result has the
// same bits every time. For rows of dim 0, and slices along a dim, see index.hpp.
namespace braid {

/// y[i, j, k] = x[i, index[i, j, k], k] (for dim 1).
///
/// Shapes    index has x's rank and, except in dim, is not larger than x → y, of index's shape
/// Types     all
/// Gradient  zeros of x's shape, with dy added at the index
/// Throws    ShapeError, DTypeError, DeviceError, IndexError
///
///     const Tensor t = arange(6).reshape({2, 3});
///     gather(t, 1, tensor({{2}, {0}}));  // [[2], [3]]
[[nodiscard]] Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index);

/// x with y[i, index[i, j, k], k] = src[i, j, k] (for dim 1). Of equal indices the last one wins.
/// (In PyTorch any of them may win, and its gradient is wrong there.)
///
/// Shapes    index, x and src have one rank; index is not larger than src and, except in dim, not
///           larger than x → y, of x's shape
/// Types     x and src of one dtype
/// Gradient  to x: dy, 0 where it was overwritten; to src: dy at the index, 0 for elements that
///           were overwritten
/// Throws    ShapeError, DTypeError, DeviceError, IndexError
///
///     const Tensor index = tensor({{2}, {0}});
///     scatter(zeros({2, 3}), 1, index, ones({2, 1}));  // [[0, 0, 1], [1, 0, 0]]
///     scatter(zeros({2, 3}), 1, index, 5.0);           // [[0, 0, 5], [5, 0, 0]]
[[nodiscard]] Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index,
                             const Tensor& src);
/// The same with one number for all.
///
/// Throws    DTypeError for a value that x's dtype cannot hold
[[nodiscard]] Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index,
                             const Scalar& value);

/// x with src added at the index. Shapes, types and errors as scatter.
///
/// Gradient  dy to x; dy at the index to src
[[nodiscard]] Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& index,
                                 const Tensor& src);

/// x with alpha times the slices of source added along dim: slice j is added at index[j].
///
/// Shapes    index [n]; source as x, but n in dim; a scalar x counts as [1]
/// Types     x and source of one dtype
/// Gradient  dy to x; alpha times the slices of dy to source
/// Throws    ShapeError, DTypeError, DeviceError, IndexError
[[nodiscard]] Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index,
                               const Tensor& source, const Scalar& alpha = 1);

/// gather, where x and index broadcast against each other except in dim. Negative indices count
/// from the end. With the indices of argsort it sorts.
///
/// Throws    as gather
///
///     const Tensor sorted = take_along_dim(x, argsort(x, 0), 0);
[[nodiscard]] Tensor take_along_dim(const Tensor& x, const Tensor& index, std::int64_t dim);

}  // namespace braid
