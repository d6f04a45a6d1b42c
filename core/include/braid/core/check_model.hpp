#pragma once
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include <braid/core/internal/tree/check.hpp>
#include <braid/core/internal/tree/flat.hpp>

// Checks of models and other trees at compile time. Their errors say what to write, in at most ten
// lines: docs/guides/usual_mistakes.md has the texts.
namespace braid {

namespace detail {

struct NamesOwner {
  void braid_owner();
};
struct NamesCall {
  void operator()();
};
/// A name that both bases have is ambiguous, also where it is private.
template <class T, class Names> struct Both : T, Names {};
template <class T>
concept CanBeBase = std::is_class_v<T> && !std::is_final_v<T>;
template <class T>
concept HasPrivateFields = CanBeBase<T> && !requires { &Both<T, NamesOwner>::braid_owner; };
/// True also if operator() is private, or overloaded.
template <class T>
concept HasCall = !CanBeBase<T> || !requires { &Both<T, NamesCall>::operator(); };
/// A pointer to a tree.
template <class T>
concept Pointer = requires(const T& t) {
  sizeof(*t);
  t == nullptr;
  requires tree::detail::is_tree<std::remove_cvref_t<decltype(*t)>>();
};

/// What is in a container, or in the containers in it; else the type itself.
template <class T> struct Innermost : std::type_identity<T> {};
template <class T>
  requires tree::List<T> || tree::Maybe<T>
struct Innermost<T> : Innermost<typename T::value_type> {};
template <tree::Map T> struct Innermost<T> : Innermost<typename T::mapped_type> {};

/// The types of a struct's fields, or of a tuple's elements.
template <class T> struct Parts : std::type_identity<T> {};
template <tree::Struct T>
struct Parts<T> : std::type_identity<decltype(std::declval<T&>().braid_fields())> {};
template <template <class, std::size_t> class Array, class E, std::size_t N>
struct Parts<Array<E, N>> : std::type_identity<std::tuple<E>> {};

/// The structs that contain the one that is checked: a struct may contain a list of itself.
struct Outer {
  const Outer* next;
  const char* type;
};
template <class T> constexpr bool is_sound(const Outer* outer = nullptr);
template <template <class...> class C, class... E>
constexpr bool are_sound([[maybe_unused]] const Outer* outer, C<E...>*) {
  return (is_sound<std::remove_cvref_t<E>>(outer) && ...);
}
template <class T> inline constexpr char kTypeId = 0;

/// The list of a struct is public, its own, and complete.
template <class T> constexpr bool has_sound_list() {
  return tree::Hooks<T>::is_public && tree::detail::lists_own<T>() &&
         tree::detail::extends_base<T>() && tree::detail::lists_all<T>();
}
/// T, and all of its parts, are trees or plain.
template <class T> constexpr bool is_sound(const Outer* outer) {
  using Inner = typename Innermost<T>::type;
  if constexpr (tree::IsTensor<T> || tree::Erased<T> || tree::detail::is_plain<T>()) {
    return true;
  } else if constexpr (tree::Struct<T>) {
    if constexpr (!has_sound_list<T>()) return false;
    for (const Outer* o = outer; o != nullptr; o = o->next)
      if (o->type == &kTypeId<T>) return true;
    const Outer self{outer, &kTypeId<T>};
    return are_sound(&self, static_cast<typename Parts<T>::type*>(nullptr));
  } else if constexpr (tree::Tuple<T>) {
    return are_sound(outer, static_cast<typename Parts<T>::type*>(nullptr));
  } else if constexpr (std::same_as<T, Inner>) {
    return false;
  } else {
    return is_sound<Inner>(outer);
  }
}

/// The part of a type that makes it unsound; the type itself if no part does.
template <class T> struct Culprit : std::type_identity<T> {};
template <class Parts> struct CulpritOf;
template <template <class...> class C, class E, class... Rest>
struct CulpritOf<C<E, Rest...>> : CulpritOf<std::tuple<Rest...>> {};
template <template <class...> class C, class E, class... Rest>
  requires(!is_sound<std::remove_cvref_t<E>>())
struct CulpritOf<C<E, Rest...>> : Culprit<std::remove_cvref_t<E>> {};
template <class T>
  requires(!is_sound<T>() && tree::Struct<T>)
struct Culprit<T> : std::conditional_t<has_sound_list<T>(), CulpritOf<typename Parts<T>::type>,
                                       std::type_identity<T>> {};
template <class T>
  requires(!is_sound<T>() && tree::Tuple<T>)
struct Culprit<T> : CulpritOf<typename Parts<T>::type> {};
template <class T>
  requires(!is_sound<T>() && !std::same_as<T, typename Innermost<T>::type>)
struct Culprit<T> : Culprit<typename Innermost<T>::type> {};

}  // namespace detail

/// Gives a readable compile error for a type that is not a tree, or contains what is not one: a
/// struct without BRAID_FIELDS, a class where they are private, a field that is a pointer, a field
/// that is missing from the list. Every function that takes a tree calls it.
template <class T> constexpr void check_tree() {
  using U = std::remove_const_t<T>;
  if constexpr (!tree::detail::is_tree<U>() || !detail::is_sound<U>()) {
    using Part = typename detail::Culprit<U>::type;
    if constexpr (!std::same_as<T, Part>) {
      check_tree<Part>();
    } else if constexpr (tree::Struct<T>) {
      static_assert(tree::Hooks<T>::is_public,
                    "braid: this class derives from nn::Module privately: write struct, or "
                    "class Net : public nn::Module");
      static_assert(tree::detail::lists_own<T>(),
                    "braid: this struct inherits BRAID_FIELDS from its base and lists none of its "
                    "own; write BRAID_FIELDS_OF(Base, own, fields)");
      static_assert(tree::detail::extends_base<T>(),
                    "braid: BRAID_FIELDS_OF of this struct names a class that is not its base");
      static_assert(tree::detail::lists_all<T>(),
                    "braid: a member that can hold tensors is missing from BRAID_FIELDS of this "
                    "struct");
    } else {
      static_assert(!tree::Variant<T>,
                    "braid: a std::variant of trees is not a tree: its paths would change with the "
                    "alternative; use one std::optional a case");
      static_assert(!detail::Pointer<T>,
                    "braid: a pointer (shared_ptr, unique_ptr, T*) is not a tree: write the layer "
                    "or model itself, or a std::optional or std::vector of layers");
      static_assert(!detail::HasPrivateFields<T>,
                    "braid: BRAID_FIELDS of this class is private: write public: before it, or "
                    "make the class a struct");
      static_assert(tree::Variant<T> || detail::Pointer<T> || detail::HasPrivateFields<T>,
                    "braid: this type is not a tree: list its fields with BRAID_FIELDS(...), or, "
                    "if it holds no tensors, say so: "
                    "template <> inline constexpr bool braid::tree::plain<Type> = true;");
    }
  }
}

/// Gives a compile error for a const tree, in functions that change it.
template <class T> constexpr void check_not_const() {
  static_assert(!std::is_const_v<T>,
                "braid: this call changes the model or tree, which is const here");
}

namespace detail {

/// What the error's overload of an operator() returns. A Tensor, so that one mistake is one error.
struct NotCallable : Tensor {};
template <class F, class... A>
concept HasResult =
    std::invocable<F, A...> && !std::same_as<std::invoke_result_t<F, A...>, NotCallable>;
/// A const F can be called with these arguments.
template <class F, class... A>
concept Calls = HasResult<const F&, const A&...>;
/// Gives a readable compile error for a model or function that cannot be called with these
/// arguments.
template <class F, class... A> constexpr void check_call() {
  if constexpr (Pointer<F>) {
    check_tree<F>();
  } else {
    constexpr bool kNamed = HasCall<F>, kNotConst = HasResult<F&, const A&...>;
    static_assert(kNamed,
                  "braid: this model has no operator(): write what PyTorch calls forward as "
                  "Tensor operator()(const Tensor& x) const");
    static_assert(!kNotConst,
                  "braid: operator() of this model is not const: write "
                  "Tensor operator()(const Tensor& x) const");
    static_assert(!kNamed || kNotConst,
                  "braid: operator() of this model, or function, does not take these arguments");
  }
}

/// A function that runs copies of the model can call it with these arguments.
template <class M, class... A>
concept CallsCopies = Calls<M, A...> && std::is_copy_constructible_v<M>;
template <class M, class... A> constexpr void check_calls_copies() {
  if constexpr (!is_sound<M>()) return;  // has a separate error
  else if constexpr (!Calls<M, A...>) check_call<M, A...>();
  else
    static_assert(std::is_copy_constructible_v<M>,
                  "braid: this model cannot be copied, and each replica is a copy");
}

}  // namespace detail
}  // namespace braid
