#pragma once
#include <braid/core/tensor.hpp>

// Elements by index. Indices are int64 tensors with values in [0, size); others are an IndexError:
// on the CPU before anything is written, on CUDA at the next wait for the device. Where several
// indices are equal, sums are added in the order of the index, without atomics: the same bits every
// time. Rows of dim 0, and slices along a dim: index_select and embedding in join.hpp.
namespace braid {

/// y[i, j, k] = x[i, index[i, j, k], k] (for dim 1).
///
/// Shapes    index has x's rank and is not larger than x, dim apart → y, of index's shape
/// Types     all
/// Gradient  zeros of x's shape with dy added at the index
/// Throws    ShapeError, DTypeError, DeviceError, IndexError
[[nodiscard]] Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index);

/// x with y[i, index[i, j, k], k] = src[i, j, k] (for dim 1). Of equal indices the last one stays.
/// (PyTorch leaves that open, and its gradient is wrong there.)
///
/// Shapes    index, x and src of one rank; index is not larger than src, and, dim apart, not larger
///           than x → y, of x's shape
/// Types     x and src of one dtype
/// Gradient  to x: dy, 0 where it was overwritten; to src: dy at the index, 0 for those that were
///           overwritten
/// Throws    ShapeError, DTypeError, DeviceError, IndexError
[[nodiscard]] Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index,
                             const Tensor& src);
/// The same with one number. Throws DTypeError for a value that x's dtype cannot hold.
[[nodiscard]] Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index,
                             const Scalar& value);

/// x with src added at the index. Shapes, types and errors as scatter. Gradient: to x dy, to src dy
/// at the index.
[[nodiscard]] Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& index,
                                 const Tensor& src);

/// x with alpha * source's slices added along dim: slice j goes to index[j].
///
/// Shapes    index [n], source as x but for n in dim; a scalar x as [1]
/// Types     x and source of one dtype
/// Gradient  to x dy; to source alpha times dy's slices
/// Throws    ShapeError, DTypeError, DeviceError, IndexError
[[nodiscard]] Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index,
                               const Tensor& source, const Scalar& alpha = 1);

/// gather where x and index broadcast against each other, dim apart: with argsort's indices it
/// sorts. Throws as gather.
[[nodiscard]] Tensor take_along_dim(const Tensor& x, const Tensor& index, std::int64_t dim);

/// The elements where the mask is true, in row-major order. Their number has to be known on the
/// host, which waits for the device.
///
/// Shapes    x and mask broadcast → [count]
/// Types     x of any dtype, mask bool (DTypeError)
/// Gradient  zeros with dy where the mask is true
[[nodiscard]] Tensor masked_select(const Tensor& x, const Tensor& mask);
/// The indices of the elements that are not 0, row-major, int64 [count, rank]; NaN is not 0. Waits
/// for the device. No gradient.
[[nodiscard]] Tensor nonzero(const Tensor& x);

/// int64 [.., classes] with 1 at the index, else 0. classes -1: the largest index + 1, for which
/// the host waits for the device. Throws IndexError for an index outside [0, classes),
/// ArgumentError for classes < -1 and for -1 with no index, DTypeError unless the index is int64.
[[nodiscard]] Tensor one_hot(const Tensor& index, std::int64_t classes = -1);

}  // namespace braid
