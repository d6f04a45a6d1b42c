#pragma once
#include <braid/core/tensor.hpp>

// Sorting along a dim. All sorts are stable, on every device: equal elements keep their order, also
// in descending sorts. NaN counts as larger than every number, as in PyTorch; -0 and 0 are equal.
namespace braid {

/// Elements chosen along a dim, and their indices (int64).
struct ValuesIndices {
  Tensor values, indices;
};

/// All elements, sorted. (PyTorch's sort is stable only with stable = true.)
///
/// Shapes    any; both results have x's
/// Types     all; values have x's dtype, indices are int64
/// Gradient  of values: dy, written to where the elements came from
/// Throws    IndexError for an invalid dim
[[nodiscard]] ValuesIndices sort(const Tensor& x, std::int64_t dim = -1, bool descending = false);
/// The indices of sort.
///
/// Gradient  none
[[nodiscard]] Tensor argsort(const Tensor& x, std::int64_t dim = -1, bool descending = false);

/// Where each value belongs in a sorted sequence: the number of its elements that are less than the
/// value, or with `right` less than or equal to it. The sequence must be ascending, which is not
/// checked. The comparisons are those of PyTorch's binary search, so a NaN in the sequence is not
/// >= any value, and a NaN value belongs at the end.
///
/// Shapes    a sequence [n] and any values; or a sequence [..., n] with the leading sizes of the
///           values [..., m], of which each row is searched in its own row; the result has the
///           values' shape
/// Types     all but bool, the same for both; the result is int64
/// Gradient  none
/// Throws    ShapeError, DTypeError, DeviceError
[[nodiscard]] Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values,
                                  bool right = false);

/// The k largest (or smallest) elements along dim, sorted, the best first. Of equal elements the
/// first are chosen (PyTorch leaves this open). `sorted` has no effect: the result is always
/// sorted.
///
/// Shapes    as x, with k elements in dim; a scalar gives a scalar
/// Types     all; values have x's dtype, indices are int64
/// Gradient  of values: dy, written to where the elements came from
/// Throws    IndexError for an invalid dim; ArgumentError unless 0 <= k <= the dim's size
///
///     const auto [values, classes] = topk(logits, 5);  // the five best classes of each row
[[nodiscard]] ValuesIndices topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1,
                                 bool largest = true, bool sorted = true);

/// The first largest element along dim, and its index; NaN counts as larger. The same as PyTorch's
/// max(x, dim). (max(x, dims) is PyTorch's amax.)
///
/// Shapes    as a reduction over dim
/// Gradient  of values: dy, to the element that was chosen
/// Throws    IndexError for an invalid dim; ShapeError if the dim has no elements
[[nodiscard]] ValuesIndices max_with_index(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// The same for the smallest element; NaN is chosen here too.
[[nodiscard]] ValuesIndices min_with_index(const Tensor& x, std::int64_t dim, bool keepdim = false);

}  // namespace braid
