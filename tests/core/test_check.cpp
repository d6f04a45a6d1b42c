// Tests of the assertions: a failure is reported with its values and fails the run. The hidden
// cases fail on purpose; the other cases run them in a separate process.
#include <stdexcept>
#include <vector>

#include "support/check.hpp"
#include "support/child.hpp"
#include "support/errors.hpp"

namespace braid::test {
namespace {

TEST_CASE("check: fails", "[.check][fails]") {
  INFO("the message " << 7);
  const std::vector<int> got{1, 2}, want{1, 3};
  CHECK(got == want);
  CHECK_FALSE(got.size() == 2u);
  CHECK(1.0 == Approx(1.1));
  CHECK_THROWS_AS(throw std::runtime_error("other"), std::logic_error);
  CHECK_THROWS_WITH(throw std::runtime_error("other"), "this");
  CHECK_THROWS_TEXT(std::runtime_error, "a*b", throw std::runtime_error("b then a"));
  CHECK_NOTHROW(throw std::runtime_error("unwanted"));
  FAIL_CHECK("nine are " << 9);
  REQUIRE(got.empty());
  CHECK("this is not reached" == std::string());
}
TEST_CASE("check: throws", "[.check][throws]") {
  CHECK(true);
  CAPTURE(1, 2.5);
  throw std::runtime_error("lost");
}
TEST_CASE("check: holds", "[.check][holds]") {
  CHECK(1 + 1 == 2);
  REQUIRE_FALSE(false);
  CHECK(0.1 + 0.2 == Approx(0.3));
  CHECK_THROWS_AS(throw std::out_of_range(""), std::logic_error);
}

TEST_CASE("check: a failure is told with its values and ends with a status", "[check]") {
  const ChildResult r = run_child("BRAID_DEVICE=cpu", "[.check][fails]");
  CHECK(r.status == 9);  // the number of failed assertions
  for (const char* text : {"{1, 2} == {1, 3}", "the message 7", "2 == 2", "Approx(1.1",
                           "another type is thrown: other", "expected \"this\", got \"other\"",
                           "expected a text with 'a*b', got 'b then a'", "thrown: unwanted",
                           "nine are 9", "got.empty()"})
    CHECK(std::pair(text, r.output.find(text) != std::string::npos) == std::pair(text, true));
  CHECK(r.output.find("not reached") == std::string::npos);
}

TEST_CASE("check: an exception that nobody expects is told with what led to it", "[check]") {
  const ChildResult r = run_child("BRAID_DEVICE=cpu", "[.check][throws]");
  CHECK(r.status == 1);
  for (const char* text : {"lost", "1, 2.5 = 1, 2.5", "the last assertion begun is"})
    CHECK(std::pair(text, r.output.find(text) != std::string::npos) == std::pair(text, true));
}

TEST_CASE("check: what holds passes", "[check]") {
  CHECK_CHILD("BRAID_DEVICE=cpu", "[.check][holds]");
}

}  // namespace
}  // namespace braid::test
