#include <algorithm>

#include <braid/core/ops/linear.hpp>

#include "op_case_makers.hpp"
#include "reference/matmul.hpp"

namespace braid::test {
namespace {

struct Operands {
  const char* variant;
  Sizes a, b;
};
const std::vector<Operands> kLayers{{"rows", {4, 3}, {2, 3}},
                                    {"vector", {3}, {2, 3}},
                                    {"batch", {2, 2, 3}, {2, 3}},
                                    {"one output", {4, 3}, {1, 3}}};

void add_layers(Cases& list, const char* op, Tensor (*call)(T, T, T)) {
  const bool relu = op[6] != 0;  // linear_relu
  for (const Operands& s : kLayers) {
    if (relu && s.variant[0] == 'o') continue;
    OpCase& c =
        push(list, op, s.variant, relu ? "F.relu(F.linear(x0, x1, x2))" : "F.linear(x0, x1, x2)",
             {{s.a}, {s.b}, {{s.b[0]}}}, kSigned);
    c.call = function_of(call);
    c.expected = expecting([relu](A x, A w, A b) {
      return reference::map(reference::linear(x, w, b),
                            [relu](double v) { return relu ? std::max(v, 0.0) : v; });
    });
    // A bias counts as one more product, wherever it is added to the sum.
    bound_by_sizes(c, terms_and(3));
    if (relu) continue;
    OpCase& n =
        push(list, op, str(s.variant, ", no bias"), "F.linear(x0, x1)", {{s.a}, {s.b}}, kSigned);
    n.call = function_of([](T x, T w) { return linear(x, w); });
    n.expected = expecting([](A x, A w) { return reference::linear(x, w); });
    bound_by_sizes(n, terms_and(2));
  }
  const auto of_x = [call](T x) { return call(x, made({2, 3}), made({2})); };
  const auto of_weight = [call](T w) { return call(made({4, 3}), w, {}); };
  const auto of_bias = [call](T b) { return call(made({4, 3}), made({2, 3}), b); };
  BadInputs(list, op)
      .tensor("x", of_x, {4, 3})
      .types(of_x, {4, 3}, {DType::float64, DType::int64}, "one dtype, got ")
      .shapes(of_x, {{}, {2}, {3, 2}}, "x \\[\\.\\., 3\\] for weight \\[2, 3\\], got ")
      .tensor("weight", of_weight, {2, 3})
      .types(of_weight, {2, 3}, {DType::float16}, "one dtype, got ")
      .shapes(of_weight, {{3}, {1, 2, 3}}, "weight \\[out, in\\], got ")
      .of("bias")
      .elsewhere(of_bias, {2})
      .types(of_bias, {2}, {DType::float64, DType::bool_}, "one dtype, got ")
      .shapes(of_bias, {{3}, {1, 2}, {}}, "bias \\[2\\] for weight \\[2, 3\\], got ");
}

}  // namespace

void add_linear_cases(Cases& list) {
  add_layers(list, "linear", linear);
  add_layers(list, "linear_relu", linear_relu);
  parameters(list, "linear(x weight bias) linear_relu(x weight bias)");
}

}  // namespace braid::test
