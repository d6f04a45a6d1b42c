#pragma once
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/scatter.hpp>

namespace braid::parallel {

namespace detail {
/// Checks that all have the first one's structure, and joins their leaves. `separate`: the pieces
/// of a gradient are dense, in memory of their own.
[[nodiscard]] std::vector<Tensor> gather_leaves(std::span<const tree::Flat> outputs,
                                                Device output_device, int dim,
                                                std::span<const int> dims, bool separate);

template <class T> [[nodiscard]] std::vector<tree::Flat> flatten_each(const std::vector<T>& trees) {
  std::vector<tree::Flat> flats;
  for (const T& one : trees) flats.push_back(tree::flatten(one));
  return flats;
}
}  // namespace detail

/// Joins the trees of the replicas into one on `output_device`: every tensor is the replicas'
/// tensors, one after the other along `dim`, or, where the tree is a tuple, those of its element i
/// along dims[i].
///
/// Shapes    equal but for `dim`. Tensors without dimensions become a vector of one element a
///           replica, with a warning, once per process. Containers keep their type and must have
///           equal sizes and keys; where the first tree has none (an empty optional, an undefined
///           tensor) so has the result. Plain fields are those of the first tree.
/// Types     equal
/// Gradient  the pieces of dy, each on its replica's device; without dimensions where the part had
///           none
/// Throws    ArgumentError `Expected at least one tensor to gather from` for an empty list,
///           `All dicts must have the same number of keys`, and for other
///           differences of structure; ShapeError
///           `Gather got an input of invalid size: got …, but expected …`; DTypeError; IndexError
///           for a wrong dim;
///           DeviceError for a device that does not exist; ArgumentError where replica 0 gives
///           tensors, and none of them is defined
template <class T>
[[nodiscard]] T gather(const std::vector<T>& outputs, Device output_device, int dim = 0,
                       const std::vector<int>& dims = {}) {
  check_tree<T>();
  // throws for an empty list
  const std::vector<Tensor> leaves =
      detail::gather_leaves(detail::flatten_each(outputs), output_device, dim, dims, false);
  return detail::with_leaves(outputs.front(), leaves);
}
/// Numbers and texts: those of all replicas, in order.
template <class T>
  requires(std::is_arithmetic_v<T> || std::is_convertible_v<const T&, std::string_view>)
[[nodiscard]] std::vector<T> gather(const std::vector<T>& outputs, Device, int = 0,
                                    const std::vector<int>& = {}) {
  return outputs;
}

}  // namespace braid::parallel
