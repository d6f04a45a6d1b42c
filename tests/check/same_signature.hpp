#pragma once

#include <type_traits>

// Our declarations of a library's functions beside its header's.
namespace braid::check {

/// A type as we declare it: enumerations are passed as the int that they are. Specialised for the
/// structs that are ours.
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
