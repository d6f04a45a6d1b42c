#include <algorithm>

#include <braid/core/ops/linear.hpp>

#include "op_case_makers.hpp"
#include "reference/activation.hpp"
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

/// Adds the bad inputs of a layer's x, weight and bias.
void refuse_layer(Cases& list, const char* op, const std::function<Tensor(T, T, T)>& call) {
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
  refuse_layer(list, op, call);
}

/// Dtypes of layers with an epilogue, which rounds the result of linear to the dtype first: by how
/// many rounding errors of the accumulator that changes it, relative to its size.
struct Rounded {
  const char* variant;
  Types dtypes;
  double rounding;
};
const std::vector<Rounded> kRounded{{"", kWide, 0},
                                    {", float16", {DType::float16}, 0x1p13},
                                    {", bfloat16", {DType::bfloat16}, 0x1p16}};

/// The result of gelu is off by at most 1.13 times the error of its input, and a few roundings.
void bound_of_gelu(OpCase& c, double rounding) {
  c.accuracy = Accuracy::bound;
  c.bound = [rounding](Arrays a) {
    const Array size = reference::linear(reference::abs(a[0]), reference::abs(a[1]),
                                         a.size() > 2 ? reference::abs(a[2]) : Array(Sizes{0}));
    const double terms = static_cast<double>(a[0].shape.back()) + 3 + rounding;
    return std::vector<Array>{
        reference::map(size, [=](double s) { return 1.13 * terms * s + 16 * (1 + s); })};
  };
}

void add_gelu_layers(Cases& list) {
  for (const bool tanh : {false, true})
    for (const Rounded& r : kRounded) {
      const std::string approximate = tanh ? "tanh" : "none",
                        end = str(tanh ? ", tanh" : "", r.variant);
      const auto gelu = [tanh](double z) {
        return tanh ? reference::gelu_tanh(z) : reference::gelu(z);
      };
      Types dtypes;
      for (const DType t : r.dtypes)
        if (is_floating(t)) dtypes.push_back(t);
      for (const Operands& s : kLayers) {
        if (r.rounding > 0 && &s != &kLayers[0]) continue;
        OpCase& c = push(list, "linear_gelu", s.variant + end,
                         "F.gelu(F.linear(x0, x1, x2), approximate='" + approximate + "')",
                         {{s.a}, {s.b}, {{s.b[0]}}}, dtypes);
        c.call = function_of([=](T x, T w, T b) { return linear_gelu(x, w, b, approximate); });
        c.expected = expecting(
            [gelu](A x, A w, A b) { return reference::map(reference::linear(x, w, b), gelu); });
        bound_of_gelu(c, r.rounding);
      }
      OpCase& n = push(list, "linear_gelu", "no bias" + end,
                       "F.gelu(F.linear(x0, x1), approximate='" + approximate + "')",
                       {{{4, 3}}, {{2, 3}}}, dtypes);
      n.call = function_of([=](T x, T w) { return linear_gelu(x, w, {}, approximate); });
      n.expected =
          expecting([gelu](A x, A w) { return reference::map(reference::linear(x, w), gelu); });
      bound_of_gelu(n, r.rounding);
    }
  refuse_layer(list, "linear_gelu", [](T x, T w, T b) { return linear_gelu(x, w, b); });
  for (const char* wrong : {"", "Tanh", "erf"})
    BadInputs(list, "linear_gelu", "approximate")
        .is(kArgument, str("approximate \"none\" or \"tanh\", got \"", wrong, '"'),
            [=] { (void)linear_gelu(made({4, 3}), made({2, 3}), {}, wrong); });
}

void add_residual_layers(Cases& list) {
  for (const Rounded& t : kRounded)
    for (const Operands& s : kLayers) {
      if (t.rounding > 0 && &s != &kLayers[0]) continue;
      Sizes result = s.a;
      result.back() = s.b[0];
      OpCase& c = push(list, "linear_add", str(s.variant, t.variant), "F.linear(x0, x1, x2) + x3",
                       {{s.a}, {s.b}, {{s.b[0]}}, {result}}, t.dtypes);
      c.call = function_of([](T x, T w, T b, T r) { return linear_add(x, w, b, r); });
      c.expected = expecting([](Arrays a) {
        return std::vector<Array>{reference::zip(reference::linear(a[0], a[1], a[2]), a[3],
                                                 [](double y, double r) { return y + r; })};
      });
      bound_by_sizes(c, terms_and(5 + t.rounding));
      OpCase& n = push(list, "linear_add", str(s.variant, ", no bias", t.variant),
                       "F.linear(x0, x1) + x2", {{s.a}, {s.b}, {result}}, t.dtypes);
      n.call = function_of([](T x, T w, T r) { return linear_add(x, w, {}, r); });
      n.expected = expecting([](A x, A w, A r) {
        return reference::zip(reference::linear(x, w), r, [](double y, double z) { return y + z; });
      });
      bound_by_sizes(n, terms_and(4 + t.rounding));
    }
  refuse_layer(list, "linear_add", [](T x, T w, T b) {
    Sizes shape(x.defined() && x.dim() > 0 ? sizes_of(x.shape()) : Sizes{4, 3});
    shape.back() = 2;
    return linear_add(x, w, b, made(shape));
  });
  const auto of_residual = [](T r) { return linear_add(made({4, 3}), made({2, 3}), made({2}), r); };
  BadInputs(list, "linear_add")
      .tensor("residual", of_residual, {4, 2})
      .types(of_residual, {4, 2}, {DType::float64, DType::int64}, "one dtype, got ")
      .shapes(of_residual, {{4, 1}, {2}, {1, 4, 2}}, "residual \\[4, 2\\], got ");
}

}  // namespace

void add_linear_cases(Cases& list) {
  add_layers(list, "linear", linear);
  add_layers(list, "linear_relu", linear_relu);
  add_gelu_layers(list);
  add_residual_layers(list);
  parameters(list,
             "linear(x weight bias) linear_relu(x weight bias) "
             "linear_gelu(x weight bias approximate) linear_add(x weight bias residual)");
}

}  // namespace braid::test
