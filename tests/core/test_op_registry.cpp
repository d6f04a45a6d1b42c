// Checks that the table of ops is complete: every op that the library defines has a case, or is
// listed below with a reason, and its parameters have bad inputs. The functions are read from the
// object files: op_symbols.sh runs the tests [op-symbols], which need its list.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "op_cases.hpp"
#include "support/tests_dir.hpp"

namespace braid::test {
namespace {

/// The functions of core/ops and nn/losses that are no op of the table, with the reasons.
std::map<std::string, std::string> not_in_the_table() {
  std::map<std::string, std::string> list;
  const auto add = [&](const char* reason, const char* words) {
    std::istringstream in(words);
    for (std::string name; in >> name;) list[name] = reason;
  };
  add("makes a tensor: test_create.cpp",
      "tensor empty zeros ones full arange linspace eye empty_like zeros_like ones_like full_like "
      "from_blob");
  add("makes random numbers: test_random.cpp, test_random_multinomial.cpp",
      "rand randn uniform randint randperm multinomial");
  add("state of the random numbers, no op: test_random.cpp",
      "manual_seed initial_seed random_state set_random_state skip_random_streams "
      "next_random_key next_random_key_of_rows next_random_stream");
  add("answers with a bool: test_compare.cpp", "allclose equal");
  add("reads an element, no op: test_tensor.cpp", "item_double item_int64");
  add("what ops in place ask first, no op: test_inplace.cpp", "kept");
  return list;
}

/// The types of the parameters of each overload of a name.
using Functions = std::map<std::string, std::vector<std::vector<std::string>>>;

/// Reads lines like "softplus(braid::Tensor const&, double, double)".
Functions read(std::istream& in) {
  Functions functions;
  for (std::string line; std::getline(in, line);) {
    const std::size_t open = line.find('(');
    std::vector<std::string>& types = functions[line.substr(0, open)].emplace_back();
    std::string type;
    int depth = 0;
    for (const char c : line.substr(open + 1)) {
      const bool ends = depth == 0 && (c == ',' || c == ')');
      depth += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
      if (!ends) {
        if (c != ' ' || !type.empty()) type += c;
        continue;
      }
      if (!type.empty()) types.push_back(type);
      type.clear();
    }
  }
  return functions;
}

const Functions& defined() {
  static const Functions all = [] {
    const char* const path = std::getenv("BRAID_OP_SYMBOLS");
    REQUIRE(path != nullptr);
    std::ifstream in(path);
    REQUIRE(in);
    return read(in);
  }();
  return all;
}

/// Whether a parameter of this type cannot be wrong: a bool, an enumeration, or a struct of those.
bool any_value_is_right(std::string type) {
  if (type.ends_with(" const&")) type.resize(type.size() - 7);
  for (const char* right :
       {"bool", "braid::Reduction", "braid::SumAndCount", "braid::nn::KlDivOptions"})
    if (type == right) return true;
  return false;
}

/// The parameters of the overload of an op that has the most that can be wrong. A struct counts as
/// one.
std::size_t can_be_wrong(const std::vector<std::vector<std::string>>& overloads) {
  std::size_t most = 0;
  for (const std::vector<std::string>& types : overloads)
    most = std::max(most, static_cast<std::size_t>(std::count_if(
                              types.begin(), types.end(),
                              [](const std::string& t) { return !any_value_is_right(t); })));
  return most;
}

std::set<std::string> ops_of_the_table() {
  std::set<std::string> ops;
  for (const OpCase& c : op_cases()) ops.insert(c.op);
  return ops;
}

}  // namespace

TEST_CASE("registry: every op that is compiled is in the table, or excused", "[.][op-symbols]") {
  const std::set<std::string> ops = ops_of_the_table();
  const std::map<std::string, std::string> excused = not_in_the_table();
  std::set<std::string> missing, stale, unknown;
  for (const auto& [name, overloads] : defined())
    if (ops.count(name) + excused.count(name) == 0) missing.insert(name);
  INFO("defined in core/ops or nn/losses, but neither in tests/core/op_cases*.cpp nor excused");
  CHECK(missing == std::set<std::string>{});
  for (const auto& [name, reason] : excused)
    if (defined().count(name) == 0 || ops.count(name) != 0) stale.insert(name);
  INFO("excused, but not defined, or in the table all the same");
  CHECK(stale == std::set<std::string>{});
  for (const std::string& op : ops)
    if (defined().count(op) == 0) unknown.insert(op);
  INFO("in the table, but not defined");
  CHECK(unknown == std::set<std::string>{});
}

TEST_CASE("registry: every op that is compiled is called with random arguments, or excused",
          "[.][op-symbols]") {
  std::set<std::string> called{
      // of uninitialised memory, or of memory that the caller owns
      "empty",
      "empty_like",
      "from_blob",
      // members that other calls cover
      "kept",
      "item_double",
      "item_int64",
      // state of the random numbers
      "manual_seed",
      "initial_seed",
      "random_state",
      "set_random_state",
      "skip_random_streams",
      "next_random_key",
      "next_random_key_of_rows",
      "next_random_stream",
// calls_of_ops.cpp includes these lists too
#define BRAID_UNARY_FUNCTION(name, c, domain) #name,
#define BRAID_UNARY_STEP(name, c) #name,
#include <braid/core/internal/unary.def>
#define BRAID_BINARY_FLOATING(name, c) #name,
#define BRAID_BINARY_DIVISION(name) #name,
#include <braid/core/internal/binary.def>
#define BRAID_ACTIVATION_OP(name) #name,
#include <braid/core/internal/activation.def>
#define BRAID_KERNEL_OP(name) #name,
#include <braid/core/internal/kernels.def>
  };
  static const std::regex call(
      "\\b(CALL|ONE|TWO|REAL|OVER|MEMBER|IN_PLACE)\\((\\w+::)?(\\w+(\\[\\])?)");
  for (const char* file : {"calls_of_ops.cpp", "calls_of_nn.cpp"}) {
    std::ifstream in(tests_dir() + "/fuzz/" + file);
    REQUIRE(in);
    for (std::string line; std::getline(in, line);)
      for (std::sregex_iterator at(line.begin(), line.end(), call), end; at != end; ++at)
        called.insert((*at)[3]);
  }
  for (const auto& [name, overloads] : defined()) {
    INFO(name << ": tests/fuzz/calls_of_ops.cpp, calls_of_nn.cpp");
    CHECK(called.contains(name));
  }
}

TEST_CASE("registry: the bad inputs of an op are of as many parameters as it has",
          "[.][op-symbols]") {
  std::map<std::string, std::set<std::string>> named;
  for (const OpCase& c : op_cases()) {
    for (const BadInput& bad : c.errors) named[c.op].insert(bad.argument);
    for (const FreeParameter& f : c.free) named[c.op].insert(f.name);
  }
  std::size_t parameters = 0;
  for (const std::string& op : ops_of_the_table()) {
    const auto found = defined().find(op);
    if (found == defined().end()) continue;  // reported above
    named[op].erase("this");
    const std::size_t expected = can_be_wrong(found->second);
    parameters += expected;
    if (named[op].size() < expected)
      FAIL_CHECK(op << ": expected bad inputs of " << expected << " parameters, or reasons, got "
                    << named[op].size());
  }
  std::cout << "SHOWS: bad inputs: " << parameters << " parameters of " << ops_of_the_table().size()
            << " ops" << std::endl;
}

TEST_CASE("registry: the list of functions is read", "[ops][registry]") {
  std::istringstream in(
      "softplus(braid::Tensor const&, double, double)\noperator[](long)\nt()\n"
      "split(braid::Tensor const&, std::span<long const, 18446744073709551615ul>, long)\n"
      "norm(braid::Tensor const&, bool)\nnorm(braid::Tensor const&, double, bool)\n");
  const Functions functions = read(in);
  CHECK(functions.size() == 5);
  CHECK(functions.at("softplus").at(0) ==
        std::vector<std::string>{"braid::Tensor const&", "double", "double"});
  CHECK(functions.at("operator[]").at(0) == std::vector<std::string>{"long"});
  CHECK(functions.at("t").at(0).empty());
  CHECK(functions.at("split").at(0).at(1) == "std::span<long const, 18446744073709551615ul>");
  CHECK(can_be_wrong(functions.at("norm")) == 2);
}

TEST_CASE("registry: every case has a name of its own", "[ops][registry]") {
  std::set<std::string> names, twice;
  for (const OpCase& c : op_cases())
    if (!names.insert(c.name()).second) twice.insert(c.name());
  CHECK(twice == std::set<std::string>{});
}

TEST_CASE("ops: a parameter with bad inputs has three, or a reason", "[ops][errors]") {
  std::map<std::string, std::map<std::string, std::size_t>> count;
  std::map<std::string, std::map<std::string, std::string>> free;
  for (const OpCase& c : op_cases()) {
    for (const BadInput& bad : c.errors) ++count[c.op][bad.argument];
    for (const FreeParameter& f : c.free) free[c.op][f.name] = f.reason;
  }
  for (const auto& [op, of] : count)
    for (const auto& [name, n] : of) {
      const bool is_free = free[op].count(name) != 0;
      if (name == "this" || (is_free && n < 3)) continue;
      if (is_free) FAIL_CHECK(op << ": " << name << " is excused, but has " << n << " bad inputs");
      else if (n < 3)
        FAIL_CHECK(op << ": expected 3 bad inputs of " << name << " or more, got " << n);
    }
  for (const auto& [op, of] : free)
    for (const auto& [name, reason] : of)
      if (reason.empty()) FAIL_CHECK(op << ": " << name << " is excused for no reason");
}

}  // namespace braid::test
