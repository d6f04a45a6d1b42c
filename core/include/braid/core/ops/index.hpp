#pragma once
#include <braid/core/tensor.hpp>

// Elements by index. Indices are int64 tensors with values in [0, size). Others throw IndexError:
// on the CPU before anything is written, on CUDA when the host next waits for the device. Where
// several indices are equal, sums are added in the order of the index, without atomics, so the
// result has the same bits every time. For rows of dim 0, and slices along a dim, see index_select
// and embedding in join.hpp.
namespace braid {

/// y[i, j, k] = x[i, index[i, j, k], k] (for dim 1).
///
/// Shapes    index has x's rank and, except in dim, is not larger than x → y, of index's shape
/// Types     all
/// Gradient  zeros of x's shape, with dy added at the index
/// Throws    ShapeError, DTypeError, DeviceError, IndexError
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
[[nodiscard]] Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index,
                             const Tensor& src);
/// The same with one number for all. Throws DTypeError for a value that x's dtype cannot hold.
[[nodiscard]] Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index,
                             const Scalar& value);

/// x with src added at the index. Shapes, types and errors as scatter. Gradient: dy to x; dy at the
/// index to src.
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

/// gather, where x and index broadcast against each other except in dim. With the indices of
/// argsort it sorts. Throws as gather.
[[nodiscard]] Tensor take_along_dim(const Tensor& x, const Tensor& index, std::int64_t dim);

/// The elements where the mask is true, in row-major order. The host waits for the device, because
/// it needs the number of these elements.
///
/// Shapes    x and mask broadcast → [count]
/// Types     x of any dtype, mask bool (else DTypeError)
/// Gradient  zeros, with dy where the mask is true
[[nodiscard]] Tensor masked_select(const Tensor& x, const Tensor& mask);
/// The indices of the elements that are not 0, in row-major order: int64 [count, rank]. NaN counts
/// as not 0. The host waits for the device. No gradient.
[[nodiscard]] Tensor nonzero(const Tensor& x);

/// int64 [.., classes] with 1 at the index, else 0. With classes -1 their number is the largest
/// index + 1, for which the host waits for the device. Throws IndexError for an index outside [0,
/// classes), ArgumentError for classes < -1 and for -1 with an empty index, DTypeError unless the
/// index is int64.
[[nodiscard]] Tensor one_hot(const Tensor& index, std::int64_t classes = -1);

}  // namespace braid
