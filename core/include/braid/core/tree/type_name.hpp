#pragma once
#include <string>
#include <string_view>

namespace braid {

namespace detail {
template <class T> constexpr const char* signature() { return __PRETTY_FUNCTION__; }
/// Extracts the name of the type from the text of signature<T>(), without namespaces, enclosing
/// classes and template arguments.
[[nodiscard]] std::string_view short_type_name(std::string_view signature) noexcept;
}  // namespace detail

/// The name of a class as written in the source: `Net` for `(anonymous namespace)::Net`,
/// `Sequential` for `braid::nn::Sequential<…>`.
template <class T> [[nodiscard]] std::string type_name() {
  return std::string(detail::short_type_name(detail::signature<T>()));
}

}  // namespace braid
