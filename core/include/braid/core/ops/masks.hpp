#pragma once
#include <braid/core/tensor.hpp>

// Masks and indices: elements where a mask is true, and their indices.
namespace braid {

/// The elements where the mask is true, in row-major order. The host waits for the device, because
/// it needs the number of these elements.
///
/// Shapes    x and mask broadcast → [count]
/// Types     x of any dtype, mask bool (else DTypeError)
/// Gradient  zeros, with dy where the mask is true
///
///     masked_select(x, gt(x, 0));  // the positive elements
[[nodiscard]] Tensor masked_select(const Tensor& x, const Tensor& mask);
/// The indices of the elements that are not 0, in row-major order: int64 [count, rank]. NaN counts
/// as not 0. The host waits for the device.
///
/// Gradient  none
[[nodiscard]] Tensor nonzero(const Tensor& x);

/// int64 [.., classes] with 1 at the index, else 0. With classes -1 their number is the largest
/// index + 1, for which the host waits for the device.
///
/// Throws    IndexError for an index outside [0, classes), ArgumentError for classes < -1 and for
///           -1 with an empty index, DTypeError unless the index is int64
///
///     one_hot(tensor({2, 0}), 3);  // [[0, 0, 1], [1, 0, 0]]
[[nodiscard]] Tensor one_hot(const Tensor& index, std::int64_t classes = -1);

}  // namespace braid
