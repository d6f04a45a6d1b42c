#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include <braid/core/tree/walk.hpp>

namespace braid::tree {

/// While it lives, copies of nn::Parameter and nn::Buffer on this thread share their tensor, and
/// are counted.
/// Read by their copy constructors; made by share().
class Sharing {
 public:
  Sharing() noexcept;
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;
  /// Parameters and buffers copied in this scope.
  [[nodiscard]] std::size_t copied() const noexcept;

  /// For the copy constructors: true if the copy is to share; counts it.
  [[nodiscard]] static bool count_copy() noexcept;

 private:
  std::size_t before_;
};

namespace detail {
/// Throws ArgumentError if more parameters and buffers were copied than the tree lists.
void check_shared(const Flat& source, const char* signature, std::size_t copied);
}  // namespace detail

/// A copy of the tree whose tensors are the same tensors, parameters too; plain fields are copied.
/// Throws ArgumentError if a field that holds parameters is missing from BRAID_FIELDS.
template <class T> [[nodiscard]] T share(const T& t) {
  Sharing scope;
  T copy = t;
  detail::check_shared(tree::flatten(t), ::braid::detail::signature<T>(), scope.copied());
  return copy;
}

/// A copy of the tree whose tensors are f(path, tensor). Undefined tensors stay so; the same tensor
/// (a tie) is mapped once and stays the same. Throws what f throws, and as share().
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
