#pragma once

#include <type_traits>

// Compares our declarations of a library's functions with those of its header.
namespace braid::check {

/// A type as we declare it: enumerations are passed as int. Specialised for structs that we declare
/// ourselves.
template <class T> struct Plain {
  using Type = T;
};
template <class T>
  requires std::is_enum_v<T>
struct Plain<T> {
  static_assert(sizeof(T) == sizeof(int));
  using Type = int;
};
template <class T> struct Plain<T*> {
  using Type = typename Plain<T>::Type*;
};
template <class R, class... A> struct Plain<R (*)(A...)> {
  using Type = typename Plain<R>::Type (*)(typename Plain<A>::Type...);
};

template <class Theirs, class Ours>
constexpr bool kSame = std::is_same_v<typename Plain<Theirs>::Type, Ours>;

}  // namespace braid::check
