#pragma once
#include <atomic>
#include <cstddef>
#include <type_traits>

#include <braid/core/internal/tree/check.hpp>
#include <braid/core/internal/tree/flat.hpp>

// A run-time check of a struct's BRAID_FIELDS, where the compiler cannot count: for a class with a
// constructor, or with a base that lists its own fields. It compares what a copy of the struct
// copies with what the list names.
namespace braid::tree {

/// How many tensors and modules a copy of a struct copies, or its list names.
struct Counts {
  std::size_t tensors = 0;  ///< parameters and buffers
  std::size_t modules = 0;  ///< including itself
};

/// While it exists, copies of nn::Parameter and nn::Buffer on this thread share their tensor; these
/// copies, and copies of nn::Module, are counted. The copy constructors of these classes use it;
/// share() and the check of a type's list create it.
class Sharing {
 public:
  Sharing() noexcept;
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;
  /// What was counted in this scope.
  [[nodiscard]] Counts copied() const noexcept;

  /// For the copy constructors of parameters and buffers: counts the copy, and returns true if it
  /// must share the tensor.
  [[nodiscard]] static bool count_copy() noexcept;
  /// For the copy constructor of a module: counts the copy, and returns true if it is a replica.
  static bool count_module() noexcept;

 private:
  Counts before_;
};

namespace detail {

/// Counts what the list contains, from this leaf and this node on.
[[nodiscard]] Counts listed(const Flat& flat, std::size_t first_leaf,
                            std::size_t first_node) noexcept;
/// Throws ArgumentError if more was copied than is listed.
void check_listed(const Counts& copied, const Counts& listed, const char* signature);
/// The same check for a type, repeated until it has passed once. `copy` makes a copy of `object`. A
/// copy that throws says nothing about the list; the check then counts as passed.
void check_type(std::atomic<bool>& checked, const void* object, void (*copy)(const void*),
                const Counts& listed, const char* signature);

/// True if a type must be checked by a copy. Aggregates are counted at compile time, unless their
/// list begins with that of a base. What cannot be copied cannot be checked.
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
