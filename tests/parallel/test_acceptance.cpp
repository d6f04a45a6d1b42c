// The list of acceptance tests: T01 to T36 and C1 to C9. The tests are in test_acceptance_*.cpp;
// here is what has none, and why.
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace braid::test {

namespace {

struct NotAvailable {
  std::string_view number, reason;
};
constexpr NotAvailable kNotAvailable[]{
    {"T03", "lazy parameters do not exist (1.9)"},  {"T05", "autocast does not exist (5.6)"},
    {"T13", "sparse gradients do not exist (7.3)"}, {"T21", "complex numbers do not exist (7.10)"},
    {"T28", "autocast does not exist (5.6)"},
};
/// Parts of tests that there are.
constexpr NotAvailable kPartNotAvailable[]{
    {"T30", "memory formats do not exist (3.12, 6.6, 7.5)"},
};

std::vector<std::string> the_list() {
  std::vector<std::string> numbers;
  for (int t = 1; t <= 36; ++t) numbers.push_back((t < 10 ? "T0" : "T") + std::to_string(t));
  for (int c = 1; c <= 9; ++c) numbers.push_back("C" + std::to_string(c));
  return numbers;
}

/// How many acceptance tests of that number are in this binary.
int tests_of(const std::string& number) {
  int count = 0;
  for (const auto& test : Catch::getRegistryHub().getTestCaseRegistry().getAllTests()) {
    const auto& info = test.getTestCaseInfo();
    count += info.name.rfind(number + ":", 0) == 0 &&
             info.tagsAsString().find("[acceptance]") != std::string::npos;
  }
  return count;
}

}  // namespace

// tests/acceptance.sh reads the lines.
TEST_CASE("acceptance: the list", "[parallel][acceptance]") {
  const std::vector<std::string> numbers = the_list();
  CHECK(numbers.size() == 45);
  for (const std::string& number : numbers) {
    INFO(number);
    const auto missing =
        std::find_if(std::begin(kNotAvailable), std::end(kNotAvailable),
                     [&](const NotAvailable& entry) { return entry.number == number; });
    CHECK(tests_of(number) == (missing == std::end(kNotAvailable) ? 1 : 0));
  }
  for (const NotAvailable& entry : kNotAvailable) {
    CHECK(std::find(numbers.begin(), numbers.end(), entry.number) != numbers.end());
    std::cout << entry.number << " n/a: " << entry.reason << '\n';
  }
  for (const NotAvailable& entry : kPartNotAvailable) {
    CHECK(tests_of(std::string(entry.number)) == 1);
    std::cout << entry.number << " part n/a: " << entry.reason << '\n';
  }
}

}  // namespace braid::test
