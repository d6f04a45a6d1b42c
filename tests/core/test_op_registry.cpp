// The table of ops is complete: what a public header declares has a case, or stands below with the
// reason why not.
#include <map>
#include <set>
#include <string>

#include "op_cases.hpp"
#include "op_declarations.hpp"

namespace braid::test {
namespace {

/// Declared in core/ops or as a member of Tensor, and no op of the table.
const std::map<std::string, std::string>& not_in_the_table() {
  const std::string makes = "makes a tensor: test_create.cpp",
                    answers = "answers with a bool: test_compare.cpp",
                    gradients = "of autograd, no op: test_autograd.cpp",
                    sums = "the sum and count of a loss that is in the table: test_loss_sums.cpp";
  static const std::map<std::string, std::string> list{
      {"tensor", makes},
      {"empty", makes},
      {"zeros", makes},
      {"ones", makes},
      {"full", makes},
      {"arange", makes},
      {"linspace", makes},
      {"eye", makes},
      {"empty_like", makes},
      {"zeros_like", makes},
      {"ones_like", makes},
      {"full_like", makes},
      {"from_blob", makes},
      {"allclose", answers},
      {"equal", answers},
      {"grad", gradients},
      {"requires_grad_", gradients},
      {"detach", gradients},
      {"cross_entropy_sum", sums},
      {"nll_loss_sum", sums},
      {"mse_loss_sum", sums},
      {"l1_loss_sum", sums},
      {"smooth_l1_loss_sum", sums},
      {"huber_loss_sum", sums},
      {"binary_cross_entropy_sum", sums},
      {"binary_cross_entropy_with_logits_sum", sums},
      {"kl_div_sum", sums},
      {"poisson_nll_loss_sum", sums},
      {"gaussian_nll_loss_sum", sums},
      {"soft_margin_loss_sum", sums},
      {"hinge_embedding_loss_sum", sums},
      {"cosine_embedding_loss_sum", sums},
      {"margin_ranking_loss_sum", sums},
      {"triplet_margin_loss_sum", sums},
      {"capsule_margin_loss_sum", sums},
  };
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
  std::set<std::string> missing, stale;
  const Declarations& declared = declared_functions();
  for (const auto& [name, parameters] : declared)
    if (ops.count(name) + not_in_the_table().count(name) == 0) missing.insert(name);
  INFO(
      "declared in a public header, but neither in tests/core/op_cases*.cpp nor excused in "
      "not_in_the_table()");
  CHECK(missing == std::set<std::string>{});
  for (const auto& [name, reason] : not_in_the_table())
    if (declared.count(name) == 0 || ops.count(name) != 0) stale.insert(name);
  INFO("excused, but not declared, or in the table all the same");
  CHECK(stale == std::set<std::string>{});
  CHECK(declared.size() > 80);
}

TEST_CASE("registry: every case is of a declared op", "[ops][registry]") {
  const Declarations& declared = declared_functions();
  std::set<std::string> unknown;
  for (const std::string& op : ops_of_the_table())
    if (declared.count(op) == 0) unknown.insert(op);
  CHECK(unknown == std::set<std::string>{});
}

TEST_CASE("registry: every case has a name of its own", "[ops][registry]") {
  std::set<std::string> names, twice;
  for (const OpCase& c : op_cases())
    if (!names.insert(c.name()).second) twice.insert(c.name());
  CHECK(twice == std::set<std::string>{});
}

TEST_CASE("registry: declarations are read from a header", "[ops][registry]") {
  const Declarations d = declarations_in(R"(
    #pragma once
    namespace braid {
    struct Options { double eps = 1e-5; std::optional<int> k = {}; Tensor mean, var;
                     [[nodiscard]] Tensor inside(int x); };
    [[nodiscard]] Tensor five(const Tensor& x, const Options& options = {});
    /// Tensor commented(int x);
    [[nodiscard]] Tensor one(const Tensor& x,
                             const Shape& dims = {},
                             bool keepdim = false);  ///< a comment; with one(semicolon)
    [[nodiscard]] Tensor one(const Tensor& x, double alpha = f(1, 2));
    [[nodiscard]] inline std::pair<Tensor, Tensor> two(std::span<const Tensor> parts) {
      return {parts[0], other(parts[1])}; }
    template <class T> [[nodiscard]] Tensor three(T* data);
    [[nodiscard]] inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
    void four();
    namespace detail { Tensor hidden(int x); }
    enum class Kind : std::uint8_t { a, b };
    class Tensor {
     public:
      [[nodiscard]] Tensor member(std::int64_t dim) const;
      [[nodiscard]] const Shape& shape() const;
      [[nodiscard]] Tensor operator[](const Tensor& index) const;
    };
    }  // namespace braid
    namespace braid { Tensor late(); }
    namespace braid::nn { Tensor loss(const Tensor& x); })");
  std::set<std::string> names;
  for (const auto& [name, parameters] : d) names.insert(name);
  CHECK(names == std::set<std::string>{"one", "two", "three", "four", "five", "late", "loss"});
  std::string one;
  for (const Parameter& p : d.at("one")) one += p.type + " | " + p.name + "; ";
  CHECK(one == "const Tensor& | x; const Shape& | dims; bool | keepdim; double | alpha; ");
  CHECK(d.at("two").at(0).name == "parts");
  std::string fields;
  for (const Parameter& p : d.at("five").at(1).fields) fields += p.type + " | " + p.name + "; ";
  CHECK(fields == "double | eps; std::optional<int> | k; Tensor | mean; Tensor | var; ");
  const Declarations members = declarations_in(
      "namespace braid { class Tensor { public: [[nodiscard]] Tensor member(std::int64_t dim) "
      "const; const Shape& shape() const; "
      "Tensor operator[](const Tensor& index) const; }; }",
      "Tensor");
  CHECK(members.size() == 2);
  CHECK(members.at("member").at(0).name == "dim");
  CHECK(members.at("operator[]").at(0).name == "index");
}

}  // namespace braid::test
