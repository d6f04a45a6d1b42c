#pragma once
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <braid/core/int_list.hpp>
#include <braid/core/internal/tree/fields.hpp>
#include <braid/core/tensor.hpp>

// Which types are trees. The set is closed: a Tensor; a struct with BRAID_FIELDS; a tuple, pair,
// array, vector, list, map or optional of trees. A type that is neither a tree nor plain does not
// compile in a walk, so nothing is skipped silently.
namespace braid::tree {

/// True for types that hold no tensors: walks skip them, and copies of a tree copy their value.
/// Specialise it for your own types:
/// `template <> inline constexpr bool braid::tree::plain<Vocabulary> = true;`. Containers of plain
/// types are plain without that.
template <class T> inline constexpr bool plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <> inline constexpr bool plain<std::string> = true;
template <> inline constexpr bool plain<std::string_view> = true;
template <> inline constexpr bool plain<const char*> = true;
template <> inline constexpr bool plain<Device> = true;
template <> inline constexpr bool plain<Shape> = true;
template <> inline constexpr bool plain<IntList> = true;

/// The kinds of leaves: a Tensor (moved and replicated), an nn::Parameter (also trained and saved),
/// an nn::Buffer (also saved).
enum class Kind : std::uint8_t { tensor, parameter, buffer };

template <class T>
concept IsTensor = std::derived_from<T, Tensor>;
template <class T>
concept Struct = !IsTensor<T> && requires(const T& t) {
  t.braid_fields();
  T::braid_names();
};
template <class T>
concept Tuple = !Struct<T> && requires { std::tuple_size<T>::value; };
/// Owns elements: a vector, list, deque, set; also a map.
template <class T>
concept Container = !Struct<T> && !plain<T> && requires {
  typename T::value_type;
  typename T::allocator_type;
};
template <class T>
concept Keyed = requires { typename T::mapped_type; };
/// Has one value per key: a multimap has no at().
template <class T>
concept Map = Container<T> && Keyed<T> && requires(T& t) { t.at(t.begin()->first); };
template <class T>
concept List = Container<T> && !Keyed<T> && requires(T& t) {
  { *t.begin() } -> std::same_as<typename T::value_type&>;
};
template <class T>
concept Maybe = !Struct<T> && requires(const T& t) {
  t.has_value();
  *t;
  typename T::value_type;
};
template <class T>
concept Variant = !Struct<T> && requires(const T& t) {
  t.valueless_by_exception();
  t.index();
};

/// A type that holds a tree whose type is known at run time only (nn::AnyModule, the base class of
/// optimizers). In the walk it is what it holds: `braid_fill(fill, name)` appends that to the
/// lists.
template <class T>
concept Erased = !Struct<T> && requires { typename T::braid_erased; };

namespace detail {

template <class T> constexpr bool is_plain();
template <class T> constexpr bool is_tree();

template <class T> struct Elements;
template <template <class...> class C, class... E> struct Elements<C<E...>> {
  static constexpr bool plain() { return (is_plain<std::remove_cvref_t<E>>() && ...); }
  static constexpr bool tree() {
    return ((is_tree<std::remove_cvref_t<E>>() || is_plain<std::remove_cvref_t<E>>()) && ...);
  }
};
template <template <class, std::size_t> class Array, class E, std::size_t N>
struct Elements<Array<E, N>> : Elements<std::tuple<E>> {};

/// True for plain types, and for types that consist of plain types only.
template <class T> constexpr bool is_plain() {
  if constexpr (plain<T>) return true;
  else if constexpr (IsTensor<T> || Struct<T> || Erased<T>) return false;
  else if constexpr (Tuple<T> || Variant<T>) return Elements<T>::plain();
  else if constexpr (Container<T> && Keyed<T>) return is_plain<typename T::mapped_type>();
  else if constexpr (Container<T> || Maybe<T>) return is_plain<typename T::value_type>();
  else return std::is_empty_v<T>;
}

template <class T> constexpr bool is_tree() {
  if constexpr (IsTensor<T> || Struct<T> || Erased<T>) return true;
  else if constexpr (Tuple<T>) return Elements<T>::tree();
  else if constexpr (Map<T>) return is_tree<typename T::mapped_type>();
  else if constexpr (List<T> || Maybe<T>) return is_tree<typename T::value_type>();
  else return false;
}

/// A tree that is not plain as well (a tuple of numbers is both).
template <class T>
concept Holds = is_tree<std::remove_cvref_t<T>>() && !is_plain<std::remove_cvref_t<T>>();

template <class T> inline constexpr Kind kind_of = Kind::tensor;
template <class T>
  requires requires { T::braid_kind; }
inline constexpr Kind kind_of<T> = T::braid_kind;

}  // namespace detail

template <class T>
concept Tree = detail::is_tree<std::remove_cvref_t<T>>();

}  // namespace braid::tree

namespace braid { using tree::Tree; }  // namespace braid
