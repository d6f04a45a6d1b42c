#pragma once
#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <braid/core/tree.hpp>

// The parts of a batch that are no tensors: a step that is recorded reads them as constants.
namespace braid::training::detail {

/// True if the compiler does not find a member of a struct that BRAID_FIELDS does not list. It can
/// count the members of aggregates.
template <class T> constexpr bool lists_every_member() {
  using Fields = decltype(std::declval<const T&>().braid_fields());
  if constexpr (std::is_aggregate_v<T> && tree::detail::lists_own<T>())
    return tree::detail::members<T>() <= std::tuple_size_v<Fields>;
  else return true;
}

template <class T> constexpr bool has_constants();

template <class Fields> struct ConstantsOf;
template <template <class...> class C, class... E> struct ConstantsOf<C<E...>> {
  static constexpr bool any = (has_constants<std::remove_cvref_t<E>>() || ...);
};
template <template <class, std::size_t> class Array, class E, std::size_t N>
struct ConstantsOf<Array<E, N>> : ConstantsOf<std::tuple<E>> {};

/// True if a tree has parts that are no tensors.
template <class T> constexpr bool has_constants() {
  if constexpr (tree::IsTensor<T> || tree::Erased<T> || std::is_void_v<T>) return false;
  else if constexpr (tree::Struct<T>)
    return !lists_every_member<T>() ||
           ConstantsOf<decltype(std::declval<const T&>().braid_fields())>::any;
  else if constexpr (tree::detail::is_plain<T>()) return !std::is_empty_v<T>;
  else if constexpr (tree::Tuple<T>) return ConstantsOf<T>::any;
  else if constexpr (tree::Keyed<T>) return has_constants<typename T::mapped_type>();
  else if constexpr (tree::Container<T> || tree::Maybe<T>)
    return has_constants<typename T::value_type>();
  else return false;
}

/// std::signbit. Not inline: <cmath> costs each program that includes this 0.1 s of compile time.
[[nodiscard]] bool has_sign(long double x) noexcept;

/// A value that the owner of its memory may change or free while the step keeps it.
template <class T>
concept Refers = std::is_pointer_v<T> || std::same_as<T, std::string_view>;

/// True if the parts of two trees of one type that are no tensors are equal; numbers bit for bit,
/// except NaN. Allocates nothing.
template <class T> bool same_constants(const T& a, const T& b) {
  if constexpr (tree::IsTensor<T> || tree::Erased<T> || std::is_empty_v<T>) {
    return true;
  } else if constexpr (tree::Struct<T>) {
    static_assert(lists_every_member<T>(),
                  "braid: BRAID_FIELDS must list every field of the batch of a captured_step, "
                  "numbers too: a replay compares them with those of the recorded call");
    return std::apply(
        [&](const auto&... x) {
          return std::apply([&](const auto&... y) { return (same_constants(x, y) && ...); },
                            b.braid_fields());
        },
        a.braid_fields());
  } else if constexpr (std::is_floating_point_v<T>) {
    return a == b ? has_sign(a) == has_sign(b) : a != a && b != b;
  } else if constexpr (tree::plain<T> || tree::Variant<T>) {
    static_assert(std::equality_comparable<T> && !Refers<T>,
                  "braid: the batch of a captured_step may hold tensors, numbers, std::string and "
                  "what has an operator== of values, no pointers and views of text: a replay "
                  "compares them with those of the recorded call");
    return a == b;
  } else if constexpr (tree::Tuple<T>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (same_constants(std::get<I>(a), std::get<I>(b)) && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (tree::Maybe<T>) {
    return a.has_value() == b.has_value() && (!a.has_value() || same_constants(*a, *b));
  } else if constexpr (requires { typename T::hasher; }) {
    if (a.size() != b.size()) return false;
    for (const auto& entry : a) {
      if constexpr (tree::Keyed<T>) {
        const auto found = b.find(entry.first);
        if (found == b.end() || !same_constants(entry.second, found->second)) return false;
      } else if (!b.contains(entry)) {
        return false;
      }
    }
    return true;
  } else {
    static_assert(tree::Container<T>);
    auto other = b.begin();
    for (auto one = a.begin(); one != a.end(); ++one, ++other)
      if (other == b.end() || !same_constants<std::remove_cvref_t<decltype(*one)>>(*one, *other))
        return false;
    return other == b.end();
  }
}

}  // namespace braid::training::detail
