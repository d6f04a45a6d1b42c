#pragma once
#include <atomic>
#include <cstddef>
#include <type_traits>

#include <braid/core/tree/check.hpp>
#include <braid/core/tree/flat.hpp>

// A check of a struct's BRAID_FIELDS at run time, for what the compiler cannot count: a class with
// a constructor, or with a base that lists fields of its own. What its copy copies is counted
// against what its list names.
namespace braid::tree {

/// What a copy of a struct copies, or what its list names.
struct Counts {
  std::size_t tensors = 0;  ///< parameters and buffers
  std::size_t modules = 0;  ///< itself included
};

/// While it lives, copies of nn::Parameter and nn::Buffer on this thread share their tensor; these
/// and copies of nn::Module are counted.
/// Read by their copy constructors; made by share() and by the check of a type's list.
class Sharing {
 public:
  Sharing() noexcept;
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;
  /// In this scope.
  [[nodiscard]] Counts copied() const noexcept;

  /// For the copy constructors of parameters and buffers: true if the copy is to share; counts it.
  [[nodiscard]] static bool count_copy() noexcept;
  /// For the copy constructor of a module.
  static void count_module() noexcept;

 private:
  Counts before_;
};

namespace detail {

/// What the list has from this leaf and this node on.
[[nodiscard]] Counts listed(const Flat& flat, std::size_t first_leaf,
                            std::size_t first_node) noexcept;
/// Throws ArgumentError if more was copied than is listed.
void check_listed(const Counts& copied, const Counts& listed, const char* signature);
/// The same for a type, of which `copy` makes a copy, until it was found right once. A copy that
/// throws says nothing about the list.
void check_type(std::atomic<bool>& checked, const void* object, void (*copy)(const void*),
                const Counts& listed, const char* signature);

/// An aggregate is counted when it is compiled, but for its base. What cannot be copied cannot be
/// counted.
template <class T> constexpr bool counted_by_copy() {
  if constexpr (!std::is_copy_constructible_v<T>) return false;
  else return !std::is_aggregate_v<T> || !std::is_void_v<decltype(owner_return(&T::braid_owner))>;
}
template <class T> inline constinit std::atomic<bool> checked{false};
template <class T> void copy_once(const void* object) {
  [[maybe_unused]] const T copy(*static_cast<const T*>(object));
}

}  // namespace detail
}  // namespace braid::tree
