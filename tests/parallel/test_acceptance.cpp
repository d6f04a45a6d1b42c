// The list of acceptance tests: T01 to T36 and C1 to C9 (docs/notes/acceptance.md). Each test is in
// the file of its subject. This file lists those that do not exist, with the reason.
#include <iostream>
#include <map>

#include "group.hpp"

namespace braid::test {

namespace {

struct NotAvailable {
  std::string number, reason;
};
const NotAvailable kNotAvailable[]{{"T03", "lazy parameters do not exist"},
                                   {"T13", "sparse gradients do not exist"},
                                   {"T21", "complex numbers do not exist"}};
/// A part that an existing test leaves out.
const NotAvailable kPartNotAvailable{"T30", "memory formats do not exist"};

/// The number of tests by acceptance number.
std::map<std::string, int>& listed() {
  static std::map<std::string, int> counts;
  return counts;
}

}  // namespace

bool list_acceptance(std::string_view title) {
  ++listed()[std::string(title.substr(0, title.find(':')))];
  return true;
}

// tests/acceptance.sh reads the lines.
TEST_CASE("acceptance: the list", "[acceptance]") {
  std::map<std::string, int> counts;
  for (int t = 1; t <= 36; ++t) counts[str(t < 10 ? "T0" : "T", t)] = 1;
  for (int c = 1; c <= 9; ++c) counts[str("C", c)] = 1;
  CHECK(counts.size() == 45);
  for (const NotAvailable& entry : kNotAvailable) {
    CHECK(counts.erase(entry.number) == 1);
    std::cout << entry.number << " n/a: " << entry.reason << '\n';
  }
  CHECK(counts.count(kPartNotAvailable.number) == 1);
  std::cout << kPartNotAvailable.number << " part n/a: " << kPartNotAvailable.reason << '\n';
  for (const auto& [number, count] : counts) {
    INFO(number);
    CHECK(listed()[number] == count);
  }
  CHECK(listed().size() == counts.size());
}

}  // namespace braid::test
