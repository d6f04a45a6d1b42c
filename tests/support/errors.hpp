#pragma once
// Checks the exact type and the text of an exception that an expression throws.
#include <exception>
#include <string>
#include <string_view>
#include <typeinfo>

#include <braid/core/tree/type_name.hpp>

#include "support/check.hpp"

namespace braid::test {

/// Returns whether the pieces of `pattern`, separated by `*`, occur in `text` in this order.
bool matches(std::string_view text, std::string_view pattern);

/// The properties of an exception type that `thrown` needs.
struct ThrownType {
  const std::type_info& type;
  std::string name;
  bool (*is_base_of)(const std::exception&);
};
template <class E> ThrownType thrown_type() {
  return {typeid(E), type_name<E>(),
          [](const std::exception& e) { return dynamic_cast<const E*>(&e) != nullptr; }};
}
[[nodiscard]] std::string thrown(const ThrownType& expected, std::string_view pattern,
                                 assertion::Call f);
void judge_thrown(const assertion::Site& site, const ThrownType& expected, std::string_view pattern,
                  assertion::Call f);

/// Returns "" if f() throws exactly an E whose what() matches, else a description of what happened.
template <class E, class F> [[nodiscard]] std::string thrown(std::string_view pattern, F&& f) {
  return thrown(thrown_type<E>(), pattern, assertion::Call(f));
}

}  // namespace braid::test

/// Checks that the expression throws exactly a Type whose text contains the pieces of `text`
/// (separated by *) in this order.
#define CHECK_THROWS_TEXT(Type, text, ...)                                                         \
  ::braid::test::judge_thrown(BRAID_SITE(check, #__VA_ARGS__), ::braid::test::thrown_type<Type>(), \
                              text, BRAID_CALL(__VA_ARGS__))
