// Checks that the table of ops is complete: every op that the library defines has a case, or is
// listed below with a reason, and its parameters, by name, have bad inputs. The functions are read
// from the object files: op_symbols.sh runs the tests [op-symbols], which need its list.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include <braid/core/ops/conv.hpp>
#include <braid/core/ops/loss.hpp>
#include <braid/core/ops/norm.hpp>
#include <braid/core/ops/pool.hpp>
#include <braid/core/ops/rnn.hpp>
#include <braid/nn/losses.hpp>

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
      "tensor empty zeros ones full arange linspace logspace eye empty_like zeros_like ones_like "
      "full_like from_blob like other_dtype ragged");
  add("makes random numbers: test_random.cpp, test_random_multinomial.cpp",
      "rand randn uniform normal bernoulli randint randperm multinomial");
  add("state of the random numbers, no op: test_random.cpp",
      "manual_seed initial_seed random_state set_random_state skip_random_streams "
      "next_random_key next_random_key_of_rows next_random_stream");
  add("answers with a bool: test_compare.cpp", "allclose equal");
  add("reads an element, no op: test_tensor.cpp", "item_double item_int64");
  add("takes a list of integers, slices and tensors: test_indexing.cpp", "index index_put_ at");
  add("moves a tensor to pinned memory, no op: test_uploads.cpp", "pin_memory");
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

struct Field {
  std::string name;
  bool any_value_is_right;
};
template <class... T> std::vector<Field> fields_of(const char* names, std::tuple<T&...>*) {
  std::vector<Field> fields;
  std::istringstream in(names);
  for (const bool right : {(std::is_same_v<T, bool> || std::is_same_v<T, Reduction>)...}) {
    std::string name;
    std::getline(in >> std::ws, name, ',');
    fields.push_back({name, right});
  }
  return fields;
}
// All fields of a struct: one that it does not have, or one too few, does not compile.
#define FIELDS(Struct, ...)                                                          \
  {"braid::" #Struct, [] {                                                           \
     struct Named : Struct {                                                         \
       auto all() { return std::tie(__VA_ARGS__); }                                  \
     };                                                                              \
     [[maybe_unused]] const auto [__VA_ARGS__] = Struct{};                           \
     return fields_of(#__VA_ARGS__, static_cast<decltype(Named{}.all())*>(nullptr)); \
   }()}
const std::map<std::string, std::vector<Field>>& structs() {
  static const std::map<std::string, std::vector<Field>> all{
      FIELDS(RunningStatistics, mean, var, num_batches_tracked, momentum),
      FIELDS(RnnWeights, w_ih, w_hh, b_ih, b_hh),
      FIELDS(RnnOptions, reverse, lengths),
      FIELDS(Conv1dOptions, stride, padding, dilation, groups, bias, device, dtype),
      FIELDS(Conv2dOptions, stride, padding, dilation, groups, bias, device, dtype),
      FIELDS(ConvTranspose1dOptions, stride, padding, output_padding, groups, bias, dilation,
             device, dtype),
      FIELDS(ConvTranspose2dOptions, stride, padding, output_padding, groups, bias, dilation,
             device, dtype),
      FIELDS(MaxPool1dOptions, stride, padding, dilation, ceil_mode),
      FIELDS(MaxPool2dOptions, stride, padding, dilation, ceil_mode),
      FIELDS(AvgPool1dOptions, stride, padding, ceil_mode, count_include_pad),
      FIELDS(AvgPool2dOptions, stride, padding, ceil_mode, count_include_pad, divisor_override),
      FIELDS(VarlenAttnOptions, is_causal, scale, dropout_p, enable_gqa),
      FIELDS(InterpolateOptions, size, scale_factor, mode, align_corners, recompute_scale_factor),
      FIELDS(CrossEntropyOptions, reduction, weight, ignore_index, label_smoothing),
      FIELDS(NllOptions, reduction, weight, ignore_index),
      FIELDS(nn::SmoothL1Options, reduction, beta),
      FIELDS(nn::HuberOptions, reduction, delta),
      FIELDS(nn::BceOptions, reduction, weight),
      FIELDS(nn::BceWithLogitsOptions, reduction, weight, pos_weight),
      FIELDS(nn::KlDivOptions, reduction, batch_mean, log_target),
      FIELDS(nn::PoissonNllOptions, reduction, log_input, full, eps),
      FIELDS(nn::GaussianNllOptions, reduction, full, eps),
      FIELDS(nn::HingeEmbeddingOptions, reduction, margin),
      FIELDS(nn::CosineEmbeddingOptions, reduction, margin),
      FIELDS(nn::MarginRankingOptions, reduction, margin),
      FIELDS(nn::TripletMarginOptions, reduction, margin, eps, swap),
      FIELDS(nn::CapsuleMarginOptions, reduction, present, absent, lambda),
  };
  return all;
}
#undef FIELDS

/// The parameters of an op: those that need bad inputs, and all.
struct Parameters {
  std::set<std::string> needed, known;
  /// Options count by their fields; another struct only if one of its fields is `named`.
  void add(std::string type, const std::string& name, const std::set<std::string>& named) {
    if (type.ends_with(" const&")) type.resize(type.size() - 7);
    const auto found = structs().find(type);
    const bool by_field = found != structs().end() &&
                          (type.ends_with("Options") ||
                           std::any_of(found->second.begin(), found->second.end(),
                                       [&](const Field& f) { return named.contains(f.name); }));
    if (by_field) {
      for (const Field& f : found->second) take(f.name, f.any_value_is_right);
    } else {
      if (type.ends_with("Options")) FAIL_CHECK(type << ": expected its fields in structs()");
      take(name, type == "bool" || type == "braid::Reduction");
    }
  }

 private:
  void take(const std::string& name, bool any_value_is_right) {
    known.insert(name);
    if (!any_value_is_right) needed.insert(name);
  }
};

using Names = std::vector<std::string>;
Names words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// Compares the parameters that have bad inputs or a reason with those of an op: the types of each
/// overload that is compiled, and the names that the table states, "x dim" (also of overloads that
/// are inline). Returns "" or the difference.
std::string compare(const std::vector<Names>& overloads, const std::vector<std::string>& stated,
                    const std::set<std::string>& named) {
  Parameters parameters;
  for (Names types : overloads) {
    std::erase(types, "braid::SumAndCount");  // a tag has one value
    bool is_stated = false;
    const auto add = [&](const Names& names) {
      if (names.size() != types.size()) return;
      is_stated = true;
      for (std::size_t i = 0; i < types.size(); ++i) parameters.add(types[i], names[i], named);
    };
    for (const std::string& names : stated) add(words_of(names));
    if (stated.empty() && types.size() < 3)
      add(std::vector<Names>{{}, {"x"}, {"a", "b"}}[types.size()]);
    if (!is_stated)
      return str("expected the names of the ", types.size(), " parameters of an overload");
  }
  for (const std::string& names : stated)
    for (const std::string& name : words_of(names)) parameters.known.insert(name);
  std::string text;
  for (const std::string& name : parameters.needed)
    if (!named.contains(name)) text += "expected bad inputs of " + name + ", or a reason; ";
  for (const std::string& name : named)
    if (!parameters.known.contains(name)) text += "has no parameter " + name + "; ";
  return text;
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
      "like",
      "other_dtype",
      "ragged",
      // needs a CUDA device
      "pin_memory",
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
#define BRAID_BINARY_INTEGER(name) #name,
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

TEST_CASE("registry: the parameters with bad inputs are those of the op", "[.][op-symbols]") {
  std::map<std::string, std::set<std::string>> named;
  std::map<std::string, std::vector<std::string>> stated;
  for (const OpCase& c : op_cases()) {
    for (const BadInput& bad : c.errors) named[c.op].insert(bad.argument);
    for (const FreeParameter& f : c.free) named[c.op].insert(f.name);
    stated[c.op].insert(stated[c.op].end(), c.overloads.begin(), c.overloads.end());
  }
  std::size_t parameters = 0;
  for (const std::string& op : ops_of_the_table()) {
    const auto found = defined().find(op);
    if (found == defined().end()) continue;  // reported above
    named[op].erase("this");
    parameters += named[op].size();
    const std::string difference = compare(found->second, stated[op], named[op]);
    if (!difference.empty()) FAIL_CHECK(op << ": " << difference);
  }
  std::cout << "SHOWS: bad inputs: " << parameters << " parameters of " << ops_of_the_table().size()
            << " ops" << std::endl;
}

TEST_CASE("registry: parameters are compared by their names", "[ops][registry]") {
  const std::string t = "braid::Tensor const&";
  CHECK(compare({{t}}, {}, {"x"}) == "");
  CHECK(compare({{t, t}}, {}, {"a", "b"}) == "");
  CHECK(compare({{t, "double", "bool"}}, {"x p on"}, {"x", "p"}) == "");
  CHECK(compare({{t}}, {}, {"x", "y"}) == "has no parameter y; ");
  CHECK(compare({{t, t}}, {}, {"a"}) == "expected bad inputs of b, or a reason; ");
  CHECK(compare({{t, t, t}}, {}, {"a"}) == "expected the names of the 3 parameters of an overload");
  // the shorter overload counts too
  CHECK(compare({{t, "long", "long"}, {t, "double"}}, {"x dim size", "x p"},
                {"x", "dim", "size"}) == "expected bad inputs of p, or a reason; ");
  CHECK(compare({{t, "braid::NllOptions const&"}}, {"x options"}, {"x", "weight"}) ==
        "expected bad inputs of ignore_index, or a reason; ");
  CHECK(compare({{t, "braid::NllOptions const&"}}, {"x options"}, {"x"}) ==
        "expected bad inputs of ignore_index, or a reason; expected bad inputs of weight, or a "
        "reason; ");
  CHECK(compare({{t, "braid::RnnWeights const&"}}, {"x weights"}, {"x", "weights"}) == "");
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
  CHECK(functions.at("norm").size() == 2);
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
