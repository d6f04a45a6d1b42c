#include <cstdlib>

#include <braid/core/internal/environment.hpp>

#include "shorthand.hpp"

namespace braid::test {

TEST_CASE("version() is the version of the project") {
  CHECK(std::string(braid::version()) == BRAID_TEST_VERSION);
}

TEST_CASE("environment: a variable that chooses", "[core][environment]") {
  constexpr const char* kName = "BRAID_TESTS_CHOICE";
  const auto chosen = [&](const char* text) {
    setenv(kName, text, 1);
    return choice_from_environment(kName, {"first", "second", "third"});
  };
  unsetenv(kName);
  CHECK(choice_from_environment(kName, {"first", "second"}) == 0);
  CHECK(chosen("") == 0);
  CHECK(chosen("first") == 0);
  CHECK(chosen("second") == 1);
  CHECK(chosen("third") == 2);
  CHECK_THROWS_TEXT(ArgumentError,
                    "BRAID_TESTS_CHOICE: expected first, second or third, got 'Third'",
                    chosen("Third"));
  CHECK_THROWS_TEXT(ArgumentError, "BRAID_TESTS_CHOICE: expected first or second, got 'Third'",
                    choice_from_environment(kName, {"first", "second"}));
  unsetenv(kName);
}

}  // namespace braid::test
