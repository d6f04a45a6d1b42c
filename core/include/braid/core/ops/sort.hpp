#pragma once
#include <braid/core/tensor.hpp>

// Order along a dim. All sorts are stable, on every device: of equal elements the earlier comes
// first, in descending order too. NaN counts as larger than every number, as in PyTorch; -0 and 0
// are equal.
namespace braid {

/// What is chosen along a dim, and where it stood (int64).
struct ValuesIndices {
  Tensor values, indices;
};

/// All elements in order. (PyTorch's is stable with stable = true only.)
///
/// Shapes    any; both results have x's
/// Types     all; values have x's dtype, indices are int64
/// Gradient  of values: dy, put where the elements came from
/// Throws    IndexError for a wrong dim
[[nodiscard]] ValuesIndices sort(const Tensor& x, std::int64_t dim = -1, bool descending = false);
/// The indices of sort. No gradient.
[[nodiscard]] Tensor argsort(const Tensor& x, std::int64_t dim = -1, bool descending = false);

/// The k largest (or smallest) elements along dim, best first. (PyTorch leaves open which of equal
/// elements are chosen; here it is the first ones. With sorted = false it leaves their order open;
/// here they are sorted all the same.)
///
/// Shapes    x → dim has k elements; a scalar gives a scalar
/// Types     all; values have x's dtype, indices are int64
/// Gradient  of values: dy, put where the elements came from
/// Throws    IndexError for a wrong dim; ArgumentError unless 0 <= k <= the dim's size
[[nodiscard]] ValuesIndices topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1,
                                 bool largest = true, bool sorted = true);

/// The first largest element along dim with its index; NaN counts as larger. PyTorch's max(x, dim).
/// (max(x, dims) is PyTorch's amax.)
///
/// Shapes    as a reduction over dim
/// Gradient  of values: dy, to the element that was chosen
/// Throws    IndexError for a wrong dim; ShapeError if there is nothing to choose from
[[nodiscard]] ValuesIndices max_with_index(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// The same for the smallest; NaN wins here too.
[[nodiscard]] ValuesIndices min_with_index(const Tensor& x, std::int64_t dim, bool keepdim = false);

}  // namespace braid
