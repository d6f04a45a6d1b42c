#pragma once
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <braid/core/check_model.hpp>
#include <braid/core/internal/tree/flat.hpp>
#include <braid/core/internal/tree/listed.hpp>

namespace braid::tree {

namespace detail {

template <class T>
inline constexpr bool is_key =
    std::convertible_to<const T&, std::string_view> || std::is_integral_v<T> || std::is_enum_v<T>;

/// The order of the keys of a map: the places of the smallest, the next, …
[[nodiscard]] std::vector<std::size_t> sorted(const std::vector<Name>& keys);

template <class K> Name key_name(const K& key) {
  static_assert(is_key<K>,
                "braid: the key of a map in a tree must be a string, an integer or an enum: it is "
                "a part of the path");
  if constexpr (std::convertible_to<const K&, std::string_view>) return Name(std::string_view(key));
  else return Name::number(static_cast<std::int64_t>(key));
}

/// Throws ArgumentError: the tree is an object of a class that derives from T.
[[noreturn]] void seen_through_base(const char* signature_of_t, const char* object);

/// Calls f(name, child) for each child of a struct or container, in order (for an unordered map, by
/// key). Returns their number.
template <class T, class F> std::int64_t children(T& node, const F& f) {
  using U = std::remove_const_t<T>;
  std::int64_t n = 0;
  if constexpr (Struct<U>) {
    if constexpr (std::is_polymorphic_v<U>)
      if (typeid(node) != typeid(U))
        seen_through_base(::braid::detail::signature<U>(), typeid(node).name());
    std::string_view names = U::braid_names();
    std::apply([&](auto&... c) { ((f(Name(next_name(names)), c), ++n), ...); },
               node.braid_fields());
  } else if constexpr (Tuple<U>) {
    std::apply([&](auto&... c) { (f(Name::number(n++), c), ...); }, node);
  } else if constexpr (Map<U> && requires { typename U::hasher; }) {
    std::vector<decltype(&*node.begin())> entries;
    std::vector<Name> keys;
    for (auto& entry : node)
      entries.push_back(&entry), keys.push_back(detail::key_name(entry.first));
    for (const std::size_t i : sorted(keys)) f(keys[i], entries[i]->second), ++n;
  } else if constexpr (Map<U>) {
    for (auto& [key, value] : node) f(detail::key_name(key), value), ++n;
  } else if constexpr (List<U>) {
    for (auto& value : node) f(Name::number(n++), value);
  } else {
    static_assert(Maybe<U>);
    if (node.has_value()) f(Name(), *node), ++n;
  }
  return n;
}

template <class T> constexpr Form form_of() {
  if constexpr (Struct<T>) return Form::structure;
  else if constexpr (Tuple<T>) return Form::tuple;
  else if constexpr (Map<T>) return Form::map;
  else if constexpr (List<T>) return Form::list;
  else return Form::optional;
}

template <class T>
inline constexpr NodeType node_type{form_of<T>(), ::braid::detail::signature<T>(),
                                    Hooks<T>::training, Hooks<T>::extra, Hooks<T>::path};

/// Appends a child, and what is below it, to the lists.
struct Fill {
  Flat& flat;
  std::int32_t parent;

  template <class Child> void operator()(const Name& name, Child& child) const {
    using T = std::remove_const_t<Child>;
    auto& node = const_cast<T&>(child);  // const trees use the same lists
    if constexpr (IsTensor<T>) {
      flat.leaves.push_back({&node, kind_of<T>, name, parent});
    } else if constexpr (Erased<T>) {
      node.braid_fill(*this, name);
    } else if constexpr (Holds<T>) {
      const std::size_t self = flat.nodes.size(), first_leaf = flat.leaves.size();
      flat.nodes.push_back({&node_type<T>, &node, name, parent, 0});
      const std::int64_t n = detail::children(node, Fill{flat, static_cast<std::int32_t>(self)});
      flat.nodes[self].size = n;
      if constexpr (Struct<T>) {
        if constexpr (counted_by_copy<T>()) {
          if (!checked<T>.load(std::memory_order_relaxed)) {
            check_type(checked<T>, &node, &copy_once<T>, listed(flat, first_leaf, self),
                       ::braid::detail::signature<T>());
          }
        }
      }
    }
  }
};

/// Calls f(path, struct) for each struct, a parent before its children.
template <class F> struct Nodes {
  const F& f;
  std::string path;

  template <class T> void operator()(const Name& name, T& node) const {
    using U = std::remove_const_t<T>;
    static_assert(!Erased<U>, "braid: visit_nodes cannot see the types inside nn::AnyModule");
    if constexpr (!IsTensor<U> && Holds<U>) {
      std::string here = path;
      if (!name.empty()) {
        if (!here.empty()) here += '.';
        if (name.is_index) here += std::to_string(name.index);
        else here += name.text;
      }
      if constexpr (Struct<U>) f(std::as_const(here), node);
      detail::children(node, Nodes{f, here});
    }
  }
};

}  // namespace detail

/// Returns the tensors and structs of the tree as flat lists. Do not replace the handles of a const
/// tree through them (the const of a handle is shallow).
///
/// Throws ArgumentError, as every walk does, if a field that holds parameters or modules is missing
/// from a BRAID_FIELDS. The first walk over a class with a constructor copies it once, to count its
/// fields; the compiler counts those of other structs. A class that cannot be copied is not
/// checked.
template <class T> [[nodiscard]] Flat flatten(const T& t) {
  if constexpr (!detail::is_plain<T>()) check_tree<T>();
  Flat flat;
  if constexpr (!IsTensor<T>) flat.leaves.reserve(8), flat.nodes.reserve(8);
  detail::Fill{flat, -1}(Name(), t);
  if constexpr (!IsTensor<T>) set_paths(flat);
  return flat;
}

/// Calls f(path, tensor) for each tensor, in the order of the fields: also for undefined ones, and
/// for a tied one each time. `path` is a std::string.
template <class T, class F> void visit(T& t, F&& f) {
  const Flat flat = tree::flatten(t);
  for (const Leaf& leaf : flat.leaves) {
    const std::string path = flat.path(leaf);
    if constexpr (std::is_const_v<T>) f(path, std::as_const(*leaf.tensor));
    else f(path, *leaf.tensor);
  }
}

/// Calls f(path, struct) for each struct of the tree, as its own type; a parent before its
/// children.
template <class T, class F> void visit_nodes(T& t, F&& f) {
  (void)tree::flatten(t);  // for its checks
  using Function = std::remove_reference_t<F>;
  detail::Nodes<Function>{f, {}}(Name(), t);
}

/// The tensors in the order of the fields: also undefined ones, and a tied one each time.
template <class T> [[nodiscard]] std::vector<Tensor> leaves(const T& t) {
  const Flat flat = tree::flatten(t);
  std::vector<Tensor> tensors;
  tensors.reserve(flat.leaves.size());
  for (const Leaf& leaf : flat.leaves) tensors.push_back(*leaf.tensor);
  return tensors;
}

}  // namespace braid::tree
