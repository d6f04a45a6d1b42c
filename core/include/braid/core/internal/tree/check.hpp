#pragma once
#include <braid/core/internal/tree/concepts.hpp>

// Compile-time checks of a struct's BRAID_FIELDS: the list must be the struct's own and, in an
// aggregate, no member that can hold tensors may be missing.
namespace braid::tree::detail {

template <class C, class R> C owner_class(R (C::*)() const);
template <class C, class R> R owner_return(R (C::*)() const);
/// The struct that declared T's list: T, or a base of it.
template <class T> using Owner = decltype(owner_class(&T::braid_owner));

template <class T> constexpr bool lists_own() { return std::same_as<Owner<T>, T>; }

template <class T, class Base> constexpr bool is_based_on(FieldsOf<Base>*) {
  return std::is_base_of_v<Base, T>;
}
template <class T> constexpr bool is_based_on(void*) { return true; }
/// True unless T has BRAID_FIELDS_OF another class than a base.
template <class T> constexpr bool extends_base() {
  return is_based_on<T>(static_cast<decltype(owner_return(&T::braid_owner))*>(nullptr));
}

// Probes for the initialisers of an aggregate: Any converts to every type, AnyTree to types that
// hold tensors, Nothing to none.
struct Any {
  template <class U> operator U() const {
    throw 0;  // never called, but a constexpr constructor may need the body
  }
};
struct AnyTree {
  template <class U>
    requires Holds<U>
  operator U() const {
    throw 0;
  }
};
struct Nothing {};

template <class T, std::size_t... I> constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{((void)I, Any{})...}; };
}
/// Number of members of an aggregate, bases included.
template <class T, std::size_t N = 0> constexpr std::size_t members() {
  if constexpr (takes<T>(std::make_index_sequence<N + 1>{})) return members<T, N + 1>();
  else return N;
}
template <class T, class Probe, std::size_t K, std::size_t... I>
constexpr bool takes_at(std::index_sequence<I...>) {
  return requires { T{std::conditional_t<I == K, Probe, Any>{}...}; };
}
/// A member that accepts Nothing accepts everything (std::any), so it says nothing about tensors.
template <class T, std::size_t K, std::size_t N> constexpr bool holds_at() {
  if constexpr (takes_at<T, AnyTree, K>(std::make_index_sequence<N>{}))
    return !takes_at<T, Nothing, K>(std::make_index_sequence<N>{});
  else return false;
}
template <class T, std::size_t... K>
constexpr std::size_t holding_members(std::index_sequence<K...>) {
  return (std::size_t{holds_at<T, K, sizeof...(K)>()} + ... + 0);
}

template <class Fields> struct Listed;
template <class... E> struct Listed<std::tuple<E...>> {
  static constexpr std::size_t holding = (std::size_t{Holds<E>} + ... + 0);
  static constexpr bool known =
      ((is_tree<std::remove_cvref_t<E>>() || is_plain<std::remove_cvref_t<E>>()) && ...);
};
template <class T> using ListedBy = Listed<decltype(std::declval<T&>().braid_fields())>;

/// Number of listed fields that can hold tensors; a base with its own list counts as one.
template <class T, class Base> constexpr std::size_t listed_members(FieldsOf<Base>*) {
  return ListedBy<T>::holding - ListedBy<Base>::holding + 1;
}
template <class T> constexpr std::size_t listed_members(void*) { return ListedBy<T>::holding; }

template <class T> constexpr bool lists_all() {
  if constexpr (std::is_aggregate_v<T> && lists_own<T>() && ListedBy<T>::known) {
    return listed_members<T>(static_cast<decltype(owner_return(&T::braid_owner))*>(nullptr)) >=
           holding_members<T>(std::make_index_sequence<members<T>()>{});
  } else {
    // a class with constructors is checked at its first walk (listed.hpp); an unknown field has a
    // separate error
    return true;
  }
}

}  // namespace braid::tree::detail
