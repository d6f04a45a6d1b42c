// Checks that the table of ops is complete: every declaration of a public header has a case, or is
// listed below with a reason, and each of its parameters has bad inputs.
#include <algorithm>
#include <filesystem>
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

/// The names that core/ops or Tensor declares but that are no op of the table, with the reasons.
std::map<std::string, std::string> not_in_the_table() {
  std::map<std::string, std::string> list;
  const auto add = [&](const char* reason, const char* words) {
    std::istringstream in(words);
    for (std::string name; in >> name;) list[name] = reason;
  };
  add("makes a tensor: test_create.cpp",
      "tensor empty zeros ones full arange linspace eye empty_like zeros_like ones_like full_like "
      "from_blob");
  add("answers with a bool: test_compare.cpp", "allclose equal");
  add("of autograd, no op: test_autograd.cpp", "grad requires_grad_ detach");
  add("what ops in place ask first, no op: test_inplace.cpp", "kept");
  add("the sum and count of a loss that is in the table: test_loss_sums.cpp",
      "cross_entropy_sum nll_loss_sum mse_loss_sum l1_loss_sum smooth_l1_loss_sum huber_loss_sum "
      "binary_cross_entropy_sum binary_cross_entropy_with_logits_sum kl_div_sum "
      "poisson_nll_loss_sum gaussian_nll_loss_sum soft_margin_loss_sum hinge_embedding_loss_sum "
      "cosine_embedding_loss_sum margin_ranking_loss_sum triplet_margin_loss_sum "
      "capsule_margin_loss_sum");
  return list;
}

struct Parameter {
  std::string type, name;
};
/// The parameters of all overloads of a name, each once; or the fields of a struct.
using Declarations = std::map<std::string, std::vector<Parameter>>;
struct Header {
  Declarations functions, structs;
};

/// Parses "const Shape& dims = {}, bool keepdim = false", or the fields "Tensor mean, var".
void add_parameters(std::vector<Parameter>& list, const std::string& text) {
  std::string part;
  int depth = 0;
  for (const char c : text + ",") {
    depth += c == '<' || c == '(' || c == '{' ? 1 : c == '>' || c == ')' || c == '}' ? -1 : 0;
    if (c != ',' || depth != 0) {
      if (c != ' ' || !part.empty()) part += c;
      continue;
    }
    std::string words = part.substr(0, part.find(" = "));
    part.clear();
    if (words.empty()) continue;
    const std::size_t space = words.rfind(' ') + 1;  // 0: the previous type applies
    const Parameter p{space == 0 ? list.back().type : words.substr(0, space - 1),
                      words.substr(space)};
    if (std::none_of(list.begin(), list.end(), [&](auto& k) { return k.name == p.name; }))
      list.push_back(p);
  }
}

/// Reads a header formatted by clang-format. A function begins a line with its result type. A
/// member of Tensor that is an op is indented by two spaces and returns tensors. Each field has a
/// separate line.
void read(std::istream& in, bool members, Header& header) {
  const auto next = [&](std::string& line) {
    if (!std::getline(in, line)) return false;
    line.erase(std::min(line.find("//"), line.size()));
    return true;
  };
  static const std::regex function(
      "(template ?<.*> )?(?!(struct|class|enum|using|namespace|friend|static_assert|extern|typedef|"
      "template|(inline )?constexpr)\\b)[A-Za-z\\[].*"),
      member(
          "  (template ?<.*> )?(\\[\\[nodiscard\\]\\] )?(inline )?(Tensor|const Tensor&|"
          "std::vector<Tensor>) .*");
  std::string structure;
  bool inside = !members;  // of class Tensor
  for (std::string line; next(line);) {
    if (line == "class Tensor {") inside = members;
    if (line == "};") structure.clear(), inside = inside && !members;
    if (line.starts_with("struct ")) structure = line.substr(7, line.find(' ', 7) - 7);
    if (inside && std::regex_match(line, members ? member : function)) {
      std::size_t open = 0, close = 0;
      for (int depth = 0; close == 0;) {
        depth = 0, open = line.find('(');
        for (std::size_t i = open; i < line.size() && close == 0; ++i) {
          depth += line[i] == '(' ? 1 : line[i] == ')' ? -1 : 0;
          if (depth == 0) close = i;
        }
        std::string more;
        if (close == 0 && !next(more)) return;
        line += ' ' + more;
      }
      const std::string name = line.substr(0, open).substr(line.rfind(' ', open) + 1);
      if (line.find(" = delete", close) != line.npos) continue;
      if (!name.starts_with("operator") || name == "operator[]")
        add_parameters(header.functions[name], line.substr(open + 1, close - open - 1));
    } else if (!structure.empty() && line.starts_with("  ") && line.find(';') != line.npos &&
               line.substr(0, line.find(" = ")).find('(') == line.npos) {
      add_parameters(header.structs[structure], line.substr(2, line.find(';') - 2));
    }
  }
}

const Header& headers() {
  static const Header all = [] {
    Header header;
    const auto take = [&](const std::filesystem::path& path) {
      std::ifstream in(path);
      REQUIRE(in);
      read(in, path.filename() == "tensor.hpp", header);
    };
    const std::filesystem::path root = tests_dir() + "/..", core = root / "core/include/braid/core";
    take(core / "tensor.hpp");
    for (const auto& entry : std::filesystem::directory_iterator(core / "ops"))
      if (entry.path().extension() == ".hpp") take(entry.path());
    take(root / "nn/include/braid/nn/losses.hpp");
    return header;
  }();
  return all;
}

std::vector<Parameter> fields_of(const Parameter& p) {
  std::string type = p.type.starts_with("const ") ? p.type.substr(6) : p.type;
  if (type.ends_with('&')) type.pop_back();
  const auto found = headers().structs.find(type);
  return found == headers().structs.end() ? std::vector<Parameter>() : found->second;
}

/// Whether p is a bool, an enumeration, or a struct of those.
bool any_value_is_right(const Parameter& p) {
  const std::vector<Parameter> fields = fields_of(p);
  if (fields.empty())  // Keep and Unbiased convert only from bool
    return p.type == "bool" || p.type == "Reduction" || p.type == "Keep" || p.type == "Unbiased";
  return std::all_of(fields.begin(), fields.end(), any_value_is_right);
}

/// Returns the parameters that need bad inputs. A struct counts by its fields if one of them has
/// bad inputs or is excused, else as a whole.
std::vector<Parameter> to_be_wrong(const std::string& op, const std::set<std::string>& named) {
  std::vector<Parameter> list;
  for (const Parameter& p : headers().functions.at(op)) {
    const std::vector<Parameter> fields = fields_of(p);
    const bool by_field = std::any_of(fields.begin(), fields.end(),
                                      [&](const Parameter& f) { return named.count(f.name) != 0; });
    if (!by_field) list.push_back(p);
    else list.insert(list.end(), fields.begin(), fields.end());
  }
  return list;
}

std::set<std::string> ops_of_the_table() {
  std::set<std::string> ops;
  for (const OpCase& c : op_cases()) ops.insert(c.op);
  return ops;
}

}  // namespace

TEST_CASE("registry: every declared op is in the table, or excused", "[ops][registry]") {
  const std::set<std::string> ops = ops_of_the_table();
  const std::map<std::string, std::string> excused = not_in_the_table();
  std::set<std::string> missing, stale, unknown;
  const Declarations& declared = headers().functions;
  for (const auto& [name, parameters] : declared)
    if (ops.count(name) + excused.count(name) == 0) missing.insert(name);
  INFO("declared in a public header, but neither in tests/core/op_cases*.cpp nor excused");
  CHECK(missing == std::set<std::string>{});
  for (const auto& [name, reason] : excused)
    if (declared.count(name) == 0 || ops.count(name) != 0) stale.insert(name);
  INFO("excused, but not declared, or in the table all the same");
  CHECK(stale == std::set<std::string>{});
  for (const std::string& op : ops)
    if (declared.count(op) == 0) unknown.insert(op);
  INFO("in the table, but not declared");
  CHECK(unknown == std::set<std::string>{});
}

TEST_CASE("registry: every declared op is called with random arguments, or excused",
          "[ops][registry]") {
  std::set<std::string> called{// of uninitialised memory, or of memory that the caller owns
                               "empty", "empty_like", "from_blob",
                               // of autograd: calls of backward cover it
                               "grad",
                               // checked first by in-place ops
                               "kept"};
  static const std::regex call(
      "\\b(CALL|ONE|TWO|REAL|OVER|MEMBER|IN_PLACE)\\((\\w+::)?(\\w+(\\[\\])?)");
  for (const char* file : {"calls_of_ops.cpp", "calls_of_nn.cpp"}) {
    std::ifstream in(tests_dir() + "/fuzz/" + file);
    REQUIRE(in);
    for (std::string line; std::getline(in, line);)
      for (std::sregex_iterator at(line.begin(), line.end(), call), end; at != end; ++at)
        called.insert((*at)[3]);
  }
  for (const auto& [name, parameters] : headers().functions) {
    INFO(name << ": tests/fuzz/calls_of_ops.cpp, calls_of_nn.cpp");
    CHECK((called.contains(name) || name.ends_with("_sum")));  // the sum form of a loss
  }
}

TEST_CASE("registry: every case has a name of its own", "[ops][registry]") {
  std::set<std::string> names, twice;
  for (const OpCase& c : op_cases())
    if (!names.insert(c.name()).second) twice.insert(c.name());
  CHECK(twice == std::set<std::string>{});
}

TEST_CASE("registry: declarations are read from a header", "[ops][registry]") {
  std::istringstream in(
      "struct Options final {\n  double eps = f(1, 2);  ///< Tensor no;\n  Tensor mean, var;\n"
      "  Tensor inside(int x) const;\n};\n[[nodiscard]] std::pair<Tensor, Tensor>\n"
      "two(const Options& options,\n    const std::map<int, int>& dims = {}, double a = g(1, 2));\n"
      "// [[nodiscard]] Tensor no(int x);\n[[nodiscard]] inline Tensor operator+(int a);\n"
      "Tensor two(std::optional<int> k) { return other(k); }\n"
      "void change(Tensor& x);\ntemplate <class T> inline Sum of(T y) { return {y}; }\n"
      "enum class Kind : int { a, b };\n"),
      members(
          "class Other {\n  Tensor no() const;\n};\nclass Tensor {\n  Tensor() noexcept = "
          "default;\n"
          "  [[nodiscard]] std::vector<Tensor> parts(int n) const;\n  Tensor late(bool on) const;\n"
          "  const Shape& shape() const;\n  [[nodiscard]] Tensor operator[](int i) const;\n};\n");
  Header header;
  read(in, false, header);
  read(members, true, header);
  std::string text;
  for (const Declarations& d : {header.functions, header.structs})
    for (const auto& [name, parameters] : d) {
      text += name + ":";
      for (const Parameter& p : parameters) text += " " + p.type + " | " + p.name + ",";
    }
  CHECK(text ==
        "change: Tensor& | x,late: bool | on,of: T | y,operator[]: int | i,parts: int | n,"
        "two: const Options& | options, const std::map<int, int>& | dims, double | a, "
        "std::optional<int> | k,Options: double | eps, Tensor | mean, Tensor | var,");
}

TEST_CASE("ops: each parameter has three bad inputs, or a reason", "[ops][errors]") {
  std::map<std::string, std::map<std::string, std::size_t>> count;
  std::map<std::string, std::map<std::string, std::string>> free;
  for (const OpCase& c : op_cases()) {
    count[c.op];
    for (const BadInput& bad : c.errors) ++count[c.op][bad.argument];
    for (const FreeParameter& f : c.free) free[c.op][f.name] = f.reason;
  }
  std::size_t least = 1000, parameters = 0, excused = 0;
  for (const auto& [op, of] : count) {
    std::set<std::string> names{"this"}, named;
    for (const auto& [name, n] : of) named.insert(name);
    for (const auto& [name, reason] : free[op]) named.insert(name);
    for (const Parameter& p : to_be_wrong(op, named)) {
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
    for (const std::string& name : named)
      if (names.count(name) == 0) FAIL_CHECK(op << " has no parameter " << name);
    for (const auto& [name, reason] : free[op])
      if (reason.empty()) FAIL_CHECK(op << ": " << name << " is excused for no reason");
  }
  std::cout << "SHOWS: bad inputs: the least a parameter is " << least << " over " << parameters
            << " parameters; " << excused
            << " more are a bool, an enumeration, or any value of them is right" << std::endl;
}

}  // namespace braid::test
