#include <braid/core/internal/environment.hpp>

#include <algorithm>
#include <cstdlib>

#include <braid/core/error.hpp>

namespace braid {

std::size_t choice_from_environment(const char* variable,
                                    std::initializer_list<std::string_view> names) {
  const char* const text = std::getenv(variable);
  const std::string_view name = text == nullptr ? "" : text;
  if (name.empty()) return 0;
  if (const auto found = std::find(names.begin(), names.end(), name); found != names.end())
    return static_cast<std::size_t>(found - names.begin());
  std::string expected;
  for (std::size_t i = 0; i < names.size(); ++i)
    expected += str(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names.begin()[i]);
  throw ArgumentError(str(variable, ": expected ", expected, ", got '", name.substr(0, 64), "'"));
}

}  // namespace braid
