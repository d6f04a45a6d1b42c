// Every bad input of the table is refused by exact type and text, and the arguments stay as they
// were; every parameter that can be wrong has three of them.
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <set>

#include "op_cases.hpp"
#include "op_declarations.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// Empty if the tensor is what it was.
std::string changed(const Noted& n) {
  if (n.tensor.shape() != n.shape || n.tensor.strides() != n.strides)
    return "its shape was changed";
  if (n.tensor.version() != n.version) return "its version was changed";
  return same_bits(n.tensor, n.copy);
}

/// Empty if the call is refused as it should be.
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

/// A bool, an enumeration, or a struct of such.
bool any_value_is_right(const Parameter& p) {
  if (p.fields.empty()) return p.type == "bool" || p.type == "Reduction";
  return std::all_of(p.fields.begin(), p.fields.end(), any_value_is_right);
}

/// The parameters that need bad inputs: of a struct its fields, where one of them has any or is
/// excused, else the struct as a whole.
std::vector<Parameter> to_be_wrong(const std::vector<Parameter>& declared,
                                   const std::set<std::string>& named) {
  std::vector<Parameter> list;
  for (const Parameter& p : declared) {
    const bool by_field = std::any_of(p.fields.begin(), p.fields.end(),
                                      [&](const Parameter& f) { return named.count(f.name) != 0; });
    if (!by_field) list.push_back(p);
    else list.insert(list.end(), p.fields.begin(), p.fields.end());
  }
  return list;
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

TEST_CASE("ops: each parameter has three bad inputs, or a reason", "[ops][errors]") {
  std::map<std::string, std::map<std::string, std::size_t>> count;
  std::map<std::string, std::map<std::string, std::string>> free;
  for (const OpCase& c : op_cases()) {
    count[c.op];
    for (const BadInput& bad : c.errors) ++count[c.op][bad.argument];
    for (const FreeParameter& f : c.free) free[c.op][f.name] = f.reason;
  }
  const Declarations& declared = declared_functions();
  std::size_t least = 1000, parameters = 0, excused = 0;
  for (const auto& [op, of] : count) {
    std::set<std::string> names{"this"}, named;
    for (const auto& [name, n] : of) named.insert(name);
    for (const auto& [name, reason] : free[op]) named.insert(name);
    for (const Parameter& p : to_be_wrong(declared.at(op), named)) {
      names.insert(p.name);
      const std::size_t n = of.count(p.name) != 0 ? of.at(p.name) : 0;
      const bool is_free = free[op].count(p.name) != 0;
      if (is_free && n >= 3)
        FAIL_CHECK(op << ": " << p.name << " is excused, but has " << n << " bad inputs");
      if (is_free || (n == 0 && any_value_is_right(p))) {
        ++excused;
        continue;
      }
      ++parameters;
      least = std::min(least, n);
      if (n < 3) FAIL_CHECK(op << ": expected 3 bad inputs of " << p.name << " or more, got " << n);
    }
    for (const auto& [name, n] : of)
      if (names.count(name) == 0) FAIL_CHECK(op << " has no parameter " << name);
    for (const auto& [name, reason] : free[op])
      if (names.count(name) == 0 || reason.empty())
        FAIL_CHECK(op << ": excused is " << name << ", which is no parameter, or for no reason");
  }
  std::cout << "SHOWS: bad inputs: the least a parameter is " << least << " over " << parameters
            << " parameters; " << excused
            << " more are a bool, an enumeration, or any value of them is right" << std::endl;
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
