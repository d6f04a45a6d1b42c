#include <braid/core/ops/rnn.hpp>

#include "op_cases.hpp"
#include "reference/rnn.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using Kind = reference::Recurrent;
using Tensors = const std::vector<Tensor>&;

struct Variant {
  const char* name;
  bool reverse, bias;
  std::vector<std::int64_t> lengths;
  std::int64_t steps, batch, inputs, hidden;
};

std::int64_t gates(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }
const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::lstm: return "lstm";
    case Kind::gru: return "gru";
    case Kind::tanh: return "rnn_tanh";
    default: return "rnn_relu";
  }
}

/// Inputs x, h_0, (lstm: c_0,) w_ih, w_hh, b_ih, b_hh.
std::vector<Tensor> call(Kind kind, const Variant& v, Tensors t) {
  const std::size_t first = kind == Kind::lstm ? 3 : 2;
  const RnnWeights w{t.at(first), t.at(first + 1), v.bias ? t.at(first + 2) : Tensor(),
                     v.bias ? t.at(first + 3) : Tensor()};
  const RnnOptions options{v.reverse, v.lengths.empty() ? Tensor() : tensor(v.lengths)};
  if (kind == Kind::lstm) {
    const LstmResult y = lstm(t[0], t[1], t[2], w, options);
    return {y.output, y.h_n, y.c_n};
  }
  const RnnResult y = kind == Kind::gru    ? gru(t[0], t[1], w, options)
                      : kind == Kind::tanh ? rnn_tanh(t[0], t[1], w, options)
                                           : rnn_relu(t[0], t[1], w, options);
  return {y.output, y.h_n};
}

std::vector<Array> expected(Kind kind, const Variant& v, const std::vector<Array>& a) {
  const std::size_t first = kind == Kind::lstm ? 3 : 2;
  const Array none(Sizes{0});
  const reference::RecurrentResult y = reference::recurrent(
      kind, a[0], a[1], kind == Kind::lstm ? a[2] : a[1], a[first], a[first + 1],
      v.bias ? a[first + 2] : none, v.bias ? a[first + 3] : none, v.reverse, v.lengths);
  if (kind == Kind::lstm) return {y.output, y.h, y.c};
  return {y.output, y.h};
}

/// PyTorch has one direction forward alone, and no lengths but packed ones.
std::string in_torch(Kind kind, const Variant& v) {
  if (!v.lengths.empty()) return "";
  const bool lstm = kind == Kind::lstm;
  const std::string state = lstm ? "[x1.unsqueeze(0), x2.unsqueeze(0)]" : "x1.unsqueeze(0)";
  const std::string weights =
      v.bias ? (lstm ? "[x3, x4, x5, x6]" : "[x2, x3, x4, x5]") : (lstm ? "[x3, x4]" : "[x2, x3]");
  const std::string made =
      str("torch.", name_of(kind), "(", v.reverse ? "x0.flip(0)" : "x0", ", ", state, ", ", weights,
          v.bias ? ", True" : ", False", ", 1, 0.0, False, False, False)");
  const std::string output = v.reverse ? "y[0].flip(0)" : "y[0]";
  const std::string first = lstm ? "x3" : "x2", second = lstm ? "x4" : "x3";
  const std::string rows = str("(", gates(kind), " * x1.shape[1], "),
                    fits = str("fits(", first, ".shape == ", rows, "x0.shape[2]), ", second,
                               ".shape == ", rows, "x1.shape[1]))");
  return str("(", fits, " or (lambda y: (", output, ", y[1][0]", lstm ? ", y[2][0]" : "", "))(",
             made, "))");
}

/// At least three bad inputs of each parameter.
std::vector<BadInput> errors(Kind kind) {
  struct Parts {
    Tensor x, h, c;
    RnnWeights w;
    RnnOptions options;
  };
  const std::int64_t g = gates(kind);
  const auto bad = [kind, g](const char* argument, std::function<void(Parts&)> spoil,
                             const char* type, const std::string& text) {
    const auto run = [kind, g, spoil] {
      using on_device::ones;
      Parts p{ones({2, 3, 4}),
              ones({3, 5}),
              ones({3, 5}),
              {ones({g * 5, 4}), ones({g * 5, 5}), ones({g * 5}), ones({g * 5})},
              {}};
      spoil(p);
      if (kind == Kind::lstm) (void)lstm(p.x, p.h, p.c, p.w, p.options);
      else if (kind == Kind::gru) (void)gru(p.x, p.h, p.w, p.options);
      else if (kind == Kind::tanh) (void)rnn_tanh(p.x, p.h, p.w, p.options);
      else (void)rnn_relu(p.x, p.h, p.w, p.options);
    };
    return BadInput{argument, run, type, str(name_of(kind), ": ", text)};
  };
  const auto of = [](const Shape& shape, DType t = DType::float32) {
    return on_device::ones(shape, {.dtype = t});
  };
  std::vector<BadInput> list{
      bad(
          "x", [=](Parts& p) { p.x = of({2, 4}); }, "ShapeError",
          R"(expected x \[steps, batch, inputs\], got \[2, 4\])"),
      bad(
          "x", [=](Parts& p) { p.x = of({0, 3, 4}); }, "ShapeError",
          R"(expected at least one step, got x \[0, 3, 4\])"),
      bad(
          "x", [=](Parts& p) { p.x = of({2, 3, 4}, DType::int64); }, "DTypeError",
          "expected a floating point tensor, got int64"),
      bad(
          "x", [=](Parts& p) { p.x = of({2, 3, 7}); }, "ShapeError",
          str(R"(expected w_ih \[)", g * 5, R"(, 7\] for x \[2, 3, 7\], got \[)", g * 5,
              R"(, 4\])")),
      bad(
          "h_0", [=](Parts& p) { p.h = of({2, 5}); }, "ShapeError",
          R"(expected h_0 \[3, 5\] for x \[2, 3, 4\], got \[2, 5\])"),
      bad(
          "h_0", [=](Parts& p) { p.h = of({1, 3, 5}); }, "ShapeError",
          R"(expected h_0 \[3, 5\] for x \[2, 3, 4\], got \[1, 3, 5\])"),
      bad(
          "h_0", [=](Parts& p) { p.h = of({3, 5}, DType::float64); }, "DTypeError",
          "expected one dtype, got float32 and float64"),
      bad(
          "weights", [=](Parts& p) { p.w.w_hh = of({g * 5 + 1, 5}); }, "ShapeError",
          str(R"(expected w_hh \[)", g, R"( \* hidden, hidden\], got)")),
      bad(
          "weights", [=](Parts& p) { p.w.w_ih = of({g * 5, 3}); }, "ShapeError", "expected w_ih"),
      bad(
          "weights", [=](Parts& p) { p.w.b_hh = {}; }, "ArgumentError",
          "expected both biases or none, got one"),
      bad(
          "weights", [=](Parts& p) { p.w.b_ih = of({2}); }, "ShapeError", "expected b_ih"),
      bad(
          "weights", [=](Parts& p) { p.w.b_hh = of({g * 5}, DType::float64); }, "DTypeError",
          "expected one dtype, got float32 and float64"),
      bad(
          "options", [](Parts& p) { p.options.lengths = tensor({1, 3, 2}); }, "IndexError",
          R"(expected lengths in \[0, 2\], got 3 at position 1)"),
      bad(
          "options", [](Parts& p) { p.options.lengths = tensor({1, 1, -1}); }, "IndexError",
          R"(expected lengths in \[0, 2\], got -1 at position 2)"),
      bad(
          "options", [](Parts& p) { p.options.lengths = tensor({1, 2}); }, "ShapeError",
          R"(expected lengths \[3\] for x \[2, 3, 4\], got \[2\])"),
      bad(
          "options", [](Parts& p) { p.options.lengths = on_device::ones({3}); }, "DTypeError",
          "expected int64 lengths, got float32")};
  if (kind == Kind::lstm) {
    list.push_back(bad(
        "c_0", [=](Parts& p) { p.c = of({3, 4}); }, "ShapeError",
        R"(expected c_0 \[3, 5\] for x \[2, 3, 4\], got \[3, 4\])"));
    list.push_back(bad(
        "c_0", [=](Parts& p) { p.c = of({3}); }, "ShapeError",
        R"(expected c_0 \[3, 5\] for x \[2, 3, 4\], got \[3\])"));
    list.push_back(bad(
        "c_0", [=](Parts& p) { p.c = of({3, 5}, DType::float16); }, "DTypeError",
        "expected one dtype, got float32 and float16"));
  }
  return list;
}

}  // namespace

void add_rnn_cases(std::vector<OpCase>& list) {
  for (const Kind kind : {Kind::lstm, Kind::gru, Kind::tanh, Kind::relu})
    for (const Variant& v :
         std::vector<Variant>{{"", false, true, {}, 3, 2, 3, 2},
                              {"reverse", true, true, {}, 3, 2, 1, 2},
                              {"no bias", false, false, {}, 2, 2, 2, 1},
                              {"lengths", false, true, {1, 3, 0}, 3, 3, 1, 1},
                              {"lengths, reverse", true, true, {1, 3, 2}, 3, 3, 1, 1},
                              {"one step of one unit", false, true, {}, 1, 2, 1, 1},
                              {"no inputs", false, true, {}, 2, 2, 0, 1},
                              {"no sequences", true, true, {}, 2, 0, 3, 1}}) {
      OpCase c;
      c.op = name_of(kind);
      c.variant = v.name;
      const std::int64_t width = gates(kind) * v.hidden;
      c.inputs = {{{v.steps, v.batch, v.inputs}}, {{v.batch, v.hidden}}};
      if (kind == Kind::lstm) c.inputs.push_back({{v.batch, v.hidden}});
      c.inputs.push_back({{width, v.inputs}});
      c.inputs.push_back({{width, v.hidden}});
      if (v.bias) c.inputs.insert(c.inputs.end(), {{{width}}, {{width}}});
      c.call = [kind, v](Tensors t) { return call(kind, v, t); };
      c.expected = [kind, v](const std::vector<Array>& a) { return expected(kind, v, a); };
      c.dtypes = floating_dtypes();
      c.accuracy = Accuracy::tolerance;
      c.torch = in_torch(kind, v);
      if (c.variant.empty()) c.errors = errors(kind);
      list.push_back(c);
    }
}

}  // namespace braid::test
