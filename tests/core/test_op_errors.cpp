// Checks that every bad input of the table throws the exact type and text and leaves the arguments
// unchanged.
#include <iostream>
#include <regex>

#include "op_cases.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// Returns "" if the tensor is unchanged, else the difference.
std::string changed(const Noted& n) {
  if (n.tensor.shape() != n.shape || n.tensor.strides() != n.strides)
    return "its shape was changed";
  if (n.tensor.version() != n.version) return "its version was changed";
  return same_bits(n.tensor, n.copy);
}

/// Returns "" if the call throws as expected, else the problem.
std::string wrong_about(const BadInput& bad, std::size_t& arguments) {
  std::vector<Noted> list;
  noted_tensors() = &list;
  std::string problem = "nothing was thrown";
  try {
    bad.call();
    synchronize(here());
  } catch (const std::exception& e) {
    const std::string type = exception_type(std::current_exception()), text = e.what();
    problem = type != bad.type ? str("expected a ", bad.type, ", got ", type, ": ", text)
              : !std::regex_search(text, std::regex(bad.text))
                  ? str("expected a text with '", bad.text, "', got '", text, "'")
                  : "";
  }
  noted_tensors() = nullptr;
  arguments += list.size();
  for (const Noted& n : list)
    if (problem.empty()) problem = changed(n);
  return problem;
}

}  // namespace

TEST_CASE("ops: bad inputs are refused by type and text, and change nothing", "[ops][errors]") {
  std::size_t calls = 0, arguments = 0;
  for (const OpCase& c : op_cases())
    for (const BadInput& bad : c.errors) {
      const std::string problem = wrong_about(bad, arguments);
      if (!problem.empty()) FAIL_CHECK(c.op << ", " << bad.argument << ": " << problem);
      ++calls;
    }
  CHECK(arguments > 500);
  std::cout << "SHOWS: bad inputs on " << here() << ": " << calls
            << " calls refused by exact type and text, " << arguments << " arguments unchanged"
            << std::endl;
}

TEST_CASE("ops: a bad input that is accepted, or refused otherwise, is found", "[ops][errors]") {
  std::size_t arguments = 0;
  const auto wrong = [&](const char* type, const char* text, std::function<void()> call) {
    return wrong_about({"x", std::move(call), type, text}, arguments);
  };
  CHECK(wrong("ShapeError", "two [a-z]+", [] { throw ShapeError("of two dims"); }) == "");
  CHECK(wrong("ArgumentError", "two", [] { throw ShapeError("of two dims"); }) != "");
  CHECK(wrong("ShapeError", "three", [] { throw ShapeError("of two dims"); }) != "");
  CHECK(wrong("ShapeError", "", [] {}) == "nothing was thrown");
  const auto after = [&](const std::function<void(const Tensor&)>& change) {
    return wrong("Error", "refused", [&] {
      change(ones({2, 3}));
      throw Error("refused");
    });
  };
  CHECK(after([](const Tensor&) {}) == "");
  CHECK(after([](const Tensor& x) { x.fill_(2); }) != "");
  CHECK(after([](const Tensor& x) { x.id()->shape = Shape{3, 2}; }) != "");
  CHECK(arguments == 3);
}

}  // namespace braid::test::on_device
