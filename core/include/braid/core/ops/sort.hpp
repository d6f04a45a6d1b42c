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
/// The indices of sort. No gradient.
[[nodiscard]] Tensor argsort(const Tensor& x, std::int64_t dim = -1, bool descending = false);

/// The k largest (or smallest) elements along dim, sorted, the best first. Of equal elements the
/// first are chosen (PyTorch leaves this open). `sorted` has no effect: the result is always
/// sorted.
///
/// Shapes    as x, with k elements in dim; a scalar gives a scalar
/// Types     all; values have x's dtype, indices are int64
/// Gradient  of values: dy, written to where the elements came from
/// Throws    IndexError for an invalid dim; ArgumentError unless 0 <= k <= the dim's size
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
