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
/// Checks that all trees have the structure of the first one, and concatenates their leaves.
/// `separate`: the pieces of a gradient are contiguous, each in separate memory.
[[nodiscard]] std::vector<Tensor> gather_leaves(std::span<const tree::Flat> outputs,
                                                Device output_device, int dim,
                                                std::span<const int> dims, bool separate);

template <class T> [[nodiscard]] std::vector<tree::Flat> flatten_each(const std::vector<T>& trees) {
  std::vector<tree::Flat> flats;
  for (const T& one : trees) flats.push_back(tree::flatten(one));
  return flats;
}
}  // namespace detail

/// Concatenates the trees of the replicas into one tree on `output_device`. Each tensor is the
/// concatenation of the replicas' tensors along `dim`. If the tree is a tuple, the tensors of
/// element i are concatenated along dims[i].
///
/// Shapes    equal except for `dim`. Tensors without dimensions become a vector with one element
///           per replica, with a warning once per process. Containers keep their type and must have
///           equal sizes and keys. Where the first tree has an empty optional or an undefined
///           tensor, the result has it too. Plain fields are taken from the first tree.
/// Types     equal
/// Gradient  each replica gets its piece of dy, on its device; without dimensions if its part had
///           none
/// Throws    ArgumentError `Expected at least one tensor to gather from` for an empty list, `All
///           dicts must have the same number of keys`, and for other differences of structure;
///           ShapeError `Gather got an input of invalid size: got …, but expected …`; DTypeError;
///           IndexError for a wrong dim; DeviceError for a device that does not exist;
///           ArgumentError if replica 0 returns tensors and none of them is defined
template <class T>
[[nodiscard]] T gather(const std::vector<T>& outputs, Device output_device, int dim = 0,
                       const std::vector<int>& dims = {}) {
  check_tree<T>();
  // throws for an empty list
  const std::vector<Tensor> leaves =
      detail::gather_leaves(detail::flatten_each(outputs), output_device, dim, dims, false);
  return detail::with_leaves(outputs.front(), leaves);
}
/// Numbers and strings: returns those of all replicas, in order.
template <class T>
  requires(std::is_arithmetic_v<T> || std::is_convertible_v<const T&, std::string_view>)
[[nodiscard]] std::vector<T> gather(const std::vector<T>& outputs, Device, int = 0,
                                    const std::vector<int>& = {}) {
  return outputs;
}

}  // namespace braid::parallel
