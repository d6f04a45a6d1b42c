#pragma once
#include <utility>
#include <vector>

#include <braid/core/tree/walk.hpp>

namespace braid::tree {

/// Returns a copy of the tree that shares its tensors, parameters too; plain fields are copied.
/// Throws ArgumentError if a field that holds parameters or modules is missing from BRAID_FIELDS.
template <class T> [[nodiscard]] T share(const T& t) {
  Sharing scope;
  T copy(t);
  detail::check_listed(scope.copied(), detail::listed(tree::flatten(t), 0, 0),
                       ::braid::detail::signature<T>());
  return copy;
}

/// Returns a copy of the tree with the tensors f(path, tensor). Undefined tensors stay undefined. A
/// tied tensor is mapped once and stays tied. Throws what f throws, and as share().
template <class T, class F> [[nodiscard]] T map(const T& t, F&& f) {
  T copy = tree::share(t);
  const Flat flat = tree::flatten(copy);
  const std::vector<std::size_t> first = flat.first_of();
  for (std::size_t i = 0; i < flat.leaves.size(); ++i) {
    Tensor& x = *flat.leaves[i].tensor;
    if (!x.defined()) continue;
    if (first[i] != i) {
      x = *flat.leaves[first[i]].tensor;
    } else {
      const std::string path = flat.path(flat.leaves[i]);
      x = f(path, std::as_const(x));
    }
  }
  return copy;
}

}  // namespace braid::tree
