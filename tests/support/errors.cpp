#include "support/errors.hpp"

#include <braid/core/error.hpp>

namespace braid::test {

bool matches(std::string_view text, std::string_view pattern) {
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

std::string thrown(const ThrownType& expected, std::string_view pattern, assertion::Call f) {
  try {
    f();
  } catch (const std::exception& e) {
    // An exception with another one nested in it has a type that the standard library derives from
    // E; exception_type reports E's name for it.
    const bool nested = expected.is_base_of(e) && dynamic_cast<const std::nested_exception*>(&e);
    const std::string name = exception_type(std::current_exception());
    if (typeid(e) != expected.type && !(nested && name == expected.name))
      return str("another type was thrown: ", name, ": ", e.what());
    if (!matches(e.what(), pattern))
      return str("expected a text with '", pattern, "', got '", e.what(), "'");
    return "";
  } catch (...) {
    return "something was thrown that is no std::exception";
  }
  return "nothing was thrown";
}

void judge_thrown(const assertion::Site& site, const ThrownType& expected, std::string_view pattern,
                  assertion::Call f) {
  assertion::begin(site);
  const std::string wrong = thrown(expected, pattern, f);
  assertion::judge_message(site, wrong.empty(), wrong);
}

}  // namespace braid::test
