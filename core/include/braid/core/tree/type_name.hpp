#pragma once
#include <string>
#include <string_view>

namespace braid {

namespace detail {
template <class T> constexpr const char* signature() { return __PRETTY_FUNCTION__; }
/// The type's own name out of what signature<T>() gives: no namespaces, enclosing classes or
/// template arguments.
[[nodiscard]] std::string_view short_type_name(std::string_view signature) noexcept;
}  // namespace detail

/// The name of a class as its author wrote it: `Net` for `(anonymous namespace)::Net`, `Sequential`
/// for `braid::nn::Sequential<…>`.
template <class T> [[nodiscard]] std::string type_name() {
  return std::string(detail::short_type_name(detail::signature<T>()));
}

}  // namespace braid
