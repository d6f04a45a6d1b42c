#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>

// How a struct lists its fields. Four plain members and no data, so that it works in local classes,
// with any number of fields.

/// Lists the fields of a struct that its walks visit: `BRAID_FIELDS(fc1, fc2)`. Comes last in the
/// struct, and is public.
#define BRAID_FIELDS(...)                                                                      \
  auto braid_fields() -> decltype(::std::tie(__VA_ARGS__)) { return ::std::tie(__VA_ARGS__); } \
  auto braid_fields() const -> decltype(::std::tie(__VA_ARGS__)) {                             \
    return ::std::tie(__VA_ARGS__);                                                            \
  }                                                                                            \
  static constexpr ::std::string_view braid_names() { return #__VA_ARGS__; }                   \
  void braid_owner() const {}

/// The same in two places, for structs of many fields in a header that everybody includes: a tuple
/// of ten references costs whoever sees it made 0.1 s. `BRAID_FIELDS_DECLARED(fc1, fc2)` in the
/// struct, `BRAID_FIELDS_DEFINED(Net, fc1, fc2)` in one source.
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

/// The fields of a base, and then one's own: `BRAID_FIELDS_OF(Base, extra)`.
#define BRAID_FIELDS_OF(Base, ...)                                                                \
  auto braid_fields() { return ::std::tuple_cat(Base::braid_fields(), ::std::tie(__VA_ARGS__)); } \
  auto braid_fields() const {                                                                     \
    return ::std::tuple_cat(Base::braid_fields(), ::std::tie(__VA_ARGS__));                       \
  }                                                                                               \
  static ::std::string_view braid_names() {                                                       \
    static const auto& names =                                                                    \
        *new ::std::string(::braid::tree::detail::joined(Base::braid_names(), #__VA_ARGS__));     \
    return names;                                                                                 \
  }                                                                                               \
  ::braid::tree::detail::FieldsOf<Base> braid_owner() const { return {}; }

namespace braid::tree::detail {

/// What braid_owner returns where the list begins with a base's.
template <class Base> struct FieldsOf {};

/// Two lists of names as one.
[[nodiscard]] std::string joined(std::string_view base, std::string_view own);
/// `0, 1, … n-1`: the names of a tuple's elements. The text lives as long as the process.
[[nodiscard]] std::string_view numbered(std::size_t n);
/// Takes the first name off the list.
[[nodiscard]] std::string_view next_name(std::string_view& names) noexcept;

}  // namespace braid::tree::detail
