#pragma once
// What an expression throws: its exact type and its text.
#include <exception>
#include <string>
#include <string_view>
#include <typeinfo>

#include <braid/core/error.hpp>
#include <braid/core/tree/type_name.hpp>

#include "support/catch.hpp"

namespace braid::test {

/// The pieces of `pattern`, separated by `*`, stand in `text` in this order.
inline bool matches(std::string_view text, std::string_view pattern) {
  std::size_t from = 0;
  while (!pattern.empty()) {
    const std::size_t star = pattern.find('*');
    const std::string_view piece = pattern.substr(0, star);
    const std::size_t found = text.find(piece, from);
    if (found == std::string_view::npos) return false;
    from = found + piece.size();
    pattern.remove_prefix(star == std::string_view::npos ? pattern.size() : star + 1);
  }
  return true;
}

/// Empty if f() throws exactly an E whose what() matches; else what happened.
template <class E, class F> [[nodiscard]] std::string thrown(std::string_view pattern, F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    // With another one nested in it an exception is of a type below E that the standard library
    // makes; it has E's name.
    const bool nested =
        dynamic_cast<const E*>(&e) && dynamic_cast<const std::nested_exception*>(&e);
    if (typeid(e) != typeid(E) &&
        !(nested && exception_type(std::current_exception()) == type_name<E>()))
      return str("another type was thrown: ", exception_type(std::current_exception()), ": ",
                 e.what());
    if (!matches(e.what(), pattern))
      return str("expected a text with '", pattern, "', got '", e.what(), "'");
    return "";
  } catch (...) {
    return "something was thrown that is no std::exception";
  }
  return "nothing was thrown";
}

}  // namespace braid::test

/// The expression throws exactly a Type, and its text has the pieces of `text` (separated by *) in
/// this order.
#define CHECK_THROWS_TEXT(Type, text, ...) \
  CHECK(::braid::test::thrown<Type>(text, [&] { static_cast<void>(__VA_ARGS__); }) == "")
