#pragma once
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <braid/core/tree.hpp>

namespace braid {

namespace detail {

/// True if all leaves are tensors (no numbers).
template <class T> constexpr bool all_tensors() {
  if constexpr (tree::IsTensor<T>) return true;
  else if constexpr (tree::Struct<T>) {
    return []<class... E>(std::tuple<E...>*) {
      return (all_tensors<std::remove_cvref_t<E>>() && ...);
    }(static_cast<decltype(std::declval<T&>().braid_fields())*>(nullptr));
  } else if constexpr (tree::Tuple<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (all_tensors<std::tuple_element_t<I, T>>() && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (tree::Map<T>) return all_tensors<typename T::mapped_type>();
  else if constexpr (tree::List<T> || tree::Maybe<T>) return all_tensors<typename T::value_type>();
  else return false;
}

/// The type for a tuple, from its elements.
template <class T> struct CollatedTuple;

/// The collated type: a number becomes a tensor, a tree of tensors keeps its type, a tuple is
/// collated element by element.
template <class T> constexpr auto collated_type() {
  if constexpr (std::is_arithmetic_v<T>) return std::type_identity<Tensor>();
  else if constexpr (all_tensors<T>()) return std::type_identity<T>();
  else if constexpr (tree::Tuple<T>) return CollatedTuple<T>::get();
  else {
    constexpr bool kTree = tree::Tree<T>;
    static_assert(!kTree,
                  "braid: collate: a number (or what holds one) in a struct, list or map cannot "
                  "become a batch; make it a Tensor, or use a tuple");
    static_assert(kTree,
                  "braid: collate: expected items that are trees of tensors, numbers, or tuples "
                  "and pairs of these");
    return std::type_identity<T>();
  }
}
template <template <class...> class C, class... E> struct CollatedTuple<C<E...>> {
  static constexpr auto get() {
    return std::type_identity<
        C<typename decltype(collated_type<std::remove_cvref_t<E>>())::type...>>();
  }
};
template <template <class, std::size_t> class Array, class E, std::size_t N>
struct CollatedTuple<Array<E, N>> {
  static constexpr auto get() {
    return std::type_identity<Array<typename decltype(collated_type<E>())::type, N>>();
  }
};

/// Stacks the leaves of the items into those of `batch` (which starts as a copy of the first item).
/// `at` is the path of these trees in the item.
void collate_leaves(const tree::Flat& batch, std::span<const tree::Flat> items,
                    const std::string& at);
/// The same for items that are tensors: the hot path of data loaders, without lists.
[[nodiscard]] Tensor collate_tensors(std::span<const Tensor> items);
[[nodiscard]] Tensor collate_numbers(const std::vector<std::int64_t>& numbers);
[[nodiscard]] Tensor collate_numbers(const std::vector<float>& numbers);
[[nodiscard]] Tensor collate_numbers(const std::vector<std::uint8_t>& numbers);  // bool
[[noreturn]] void nothing_to_collate();

/// `get` returns the part of an item that is collated here.
template <class T, class Item, class Get>
auto collate_part(std::span<const Item> items, const Get& get, const std::string& at) {
  if constexpr (std::is_arithmetic_v<T>) {
    using Number =
        std::conditional_t<std::is_same_v<T, bool>, std::uint8_t,
                           std::conditional_t<std::is_integral_v<T>, std::int64_t, float>>;
    std::vector<Number> numbers;
    numbers.reserve(items.size());
    for (const Item& item : items) numbers.push_back(static_cast<Number>(get(item)));
    return collate_numbers(numbers);
  } else if constexpr (std::is_same_v<T, Tensor> && std::is_same_v<Item, Tensor>) {
    return collate_tensors(items);
  } else if constexpr (all_tensors<T>()) {
    T batch = tree::share<T>(get(items.front()));
    std::vector<tree::Flat> flats;
    flats.reserve(items.size());
    for (const Item& item : items) flats.push_back(tree::flatten<T>(get(item)));
    collate_leaves(tree::flatten(batch), flats, at);
    return batch;
  } else {
    using Batch = typename decltype(collated_type<T>())::type;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Batch{collate_part<std::remove_cvref_t<std::tuple_element_t<I, T>>>(
          items, [&get](const Item& item) -> const auto& { return std::get<I>(get(item)); },
          (at.empty() ? at : at + '.') + std::to_string(I))...};
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  }
}

}  // namespace detail

/// The type that collate returns for items of type T.
template <class T> using Collated = typename decltype(detail::collated_type<T>())::type;

/// Combines items into one batch: stacks each tensor with those of the other items along a new dim
/// 0.
///
/// Types     items that are trees of tensors give a tree of the same type. In tuples and pairs
///           numbers become tensors: integers int64, floating point float32, bool bool. A number in
///           a struct, list or map does not compile.
/// Gradient  flows to the items' tensors
/// Throws    ArgumentError for no items, and if none of their tensors is defined (a tensor that is
///           undefined in all items stays undefined); ShapeError, DTypeError, DeviceError, with the
///           path, if items differ
///
///     const std::vector<std::pair<Tensor, int>> items{{ones({28}), 3}, {ones({28}), 1}};
///     const auto [inputs, classes] = collate(items);  // [2, 28], and int64 [2]
template <class T> [[nodiscard]] Collated<T> collate(std::span<const T> items) {
  if (items.empty()) detail::nothing_to_collate();
  return detail::collate_part<T>(items, [](const T& item) -> const T& { return item; }, {});
}
template <class T> [[nodiscard]] Collated<T> collate(const std::vector<T>& items) {
  return braid::collate(std::span<const T>(items));
}

}  // namespace braid
