#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>

// How a struct lists its fields: by four ordinary member functions and no data, so that it works in
// local classes, and with any number of fields.

/// Lists those fields of a struct that a walk over the tree visits: `BRAID_FIELDS(fc1, fc2)`. Must
/// be public and the last member.
#define BRAID_FIELDS(...)                                                                      \
  auto braid_fields() -> decltype(::std::tie(__VA_ARGS__)) { return ::std::tie(__VA_ARGS__); } \
  auto braid_fields() const -> decltype(::std::tie(__VA_ARGS__)) {                             \
    return ::std::tie(__VA_ARGS__);                                                            \
  }                                                                                            \
  static constexpr ::std::string_view braid_names() { return #__VA_ARGS__; }                   \
  void braid_owner() const {}

/// The same, split into declaration and definition, for structs of many fields in widely included
/// headers: a tuple of ten references costs each source file that instantiates it 0.1 s of compile
/// time. Write `BRAID_FIELDS_DECLARED(fc1, fc2)` in the struct and
/// `BRAID_FIELDS_DEFINED(Net, fc1, fc2)` in one source file.
#define BRAID_FIELDS_DECLARED(...)                                           \
  auto braid_fields() -> decltype(::std::tie(__VA_ARGS__));                  \
  auto braid_fields() const -> decltype(::std::tie(__VA_ARGS__));            \
  static constexpr ::std::string_view braid_names() { return #__VA_ARGS__; } \
  void braid_owner() const {}
#define BRAID_FIELDS_DEFINED(Struct, ...)                                  \
  auto Struct::braid_fields() -> decltype(::std::tie(__VA_ARGS__)) {       \
    return ::std::tie(__VA_ARGS__);                                        \
  }                                                                        \
  auto Struct::braid_fields() const -> decltype(::std::tie(__VA_ARGS__)) { \
    return ::std::tie(__VA_ARGS__);                                        \
  }

/// The fields of a base, followed by the struct's own: `BRAID_FIELDS_OF(Base, extra)`. Without own
/// fields the base's functions are inherited.
#define BRAID_FIELDS_OF(Base, ...)                   \
  __VA_OPT__(BRAID_JOINED_FIELDS(Base, __VA_ARGS__)) \
  ::braid::tree::detail::FieldsOf<Base> braid_owner() const { return {}; }
#define BRAID_JOINED_FIELDS(Base, ...)                                                            \
  auto braid_fields() { return ::std::tuple_cat(Base::braid_fields(), ::std::tie(__VA_ARGS__)); } \
  auto braid_fields() const {                                                                     \
    return ::std::tuple_cat(Base::braid_fields(), ::std::tie(__VA_ARGS__));                       \
  }                                                                                               \
  static ::std::string_view braid_names() {                                                       \
    static const auto& names =                                                                    \
        *new ::std::string(::braid::tree::detail::joined(Base::braid_names(), #__VA_ARGS__));     \
    return names;                                                                                 \
  }

namespace braid::tree::detail {

/// What braid_owner returns if the list begins with that of a base.
template <class Base> struct FieldsOf {};

/// Concatenates two lists of names.
[[nodiscard]] std::string joined(std::string_view base, std::string_view own);
/// `0,1,…,n-1`: the names of a tuple's elements. The text lives as long as the process.
[[nodiscard]] std::string_view numbered(std::size_t n);
/// Removes the first name from the list and returns it.
[[nodiscard]] std::string_view next_name(std::string_view& names) noexcept;

}  // namespace braid::tree::detail
