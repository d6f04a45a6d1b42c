#pragma once
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <braid/core/tensor.hpp>

// Sorting along a dim. All sorts are stable, on every device: equal elements keep their order, also
// in descending sorts. NaN counts as larger than every number, as in PyTorch; -0 and 0 are equal.
namespace braid {

/// Elements chosen along a dim, and their indices (int64). It is a std::tuple, with names for its
/// two parts.
///
///     const auto [best, where] = max(x, 1);
///     const Tensor classes = std::get<1>(max(x, 1)), same = max(x, 1).indices;
struct ValuesIndices : std::tuple<Tensor, Tensor> {
  ValuesIndices(Tensor v, Tensor i) : tuple(std::move(v), std::move(i)) {}
  ValuesIndices(const ValuesIndices& other) : tuple(other) {}
  ValuesIndices& operator=(const ValuesIndices& other) {
    tuple::operator=(other);
    return *this;
  }
  ~ValuesIndices() = default;
  Tensor &values = std::get<0>(*this), &indices = std::get<1>(*this);
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
/// value, or with `right` less than or equal to it. A side, "left" or "right", says the same as
/// `right`. The sequence must be ascending, which is not
/// checked. The comparisons are those of PyTorch's binary search, so a NaN in the sequence is not
/// >= any value, and a NaN value belongs at the end.
///
/// Shapes    a sequence [n] and any values; or a sequence [..., n] with the leading sizes of the
///           values [..., m], of which each row is searched in its own row; the result has the
///           values' shape
/// Types     all but bool, the same for both; the result is int64, or int32 with out_int32
/// Gradient  none
/// Throws    ShapeError, DTypeError, DeviceError; ArgumentError for another side, for "left" with
///           `right`, and for a sequence that is too long for int32
///
///     searchsorted(tensor({1, 3, 5}), tensor({3}));               // 1
///     searchsorted(tensor({1, 3, 5}), tensor({3}), false, true);  // 2
[[nodiscard]] Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values,
                                  bool out_int32 = false, bool right = false,
                                  std::optional<std::string_view> side = {});

/// The k largest (or smallest) elements along dim, sorted, the best first. Of equal elements the
/// first are chosen (PyTorch leaves this open). `sorted` has no effect: the result is always
/// sorted.
///
/// Shapes    as x, with k elements in dim; a scalar gives a scalar, with k = 0 too
/// Types     all; values have x's dtype, indices are int64
/// Gradient  of values: dy, written to where the elements came from
/// Throws    IndexError for an invalid dim; ArgumentError unless 0 <= k <= the dim's size
///
///     const auto [values, classes] = topk(logits, 5);  // the five best classes of each row
[[nodiscard]] ValuesIndices topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1,
                                 bool largest = true, bool sorted = true);

/// The first largest element along dim, and its index; NaN counts as larger. amax(x, dims)
/// gives the elements only, over any dims.
///
/// Shapes    as a reduction over dim
/// Gradient  of values: dy, to the element that was chosen
/// Throws    IndexError for an invalid dim; ShapeError if the dim has no elements
[[nodiscard]] ValuesIndices max(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// The same for the smallest element; NaN is chosen here too.
[[nodiscard]] ValuesIndices min(const Tensor& x, std::int64_t dim, bool keepdim = false);

}  // namespace braid

template <>
struct std::tuple_size<braid::ValuesIndices> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I> struct std::tuple_element<I, braid::ValuesIndices> {
  using type = braid::Tensor;
};
