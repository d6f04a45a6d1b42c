#include <regex>

#include <braid/core/ops/rnn.hpp>

#include "op_case_makers.hpp"
#include "reference/rnn.hpp"

namespace braid::test {
namespace {

using Cell = reference::Recurrent;

struct Variant {
  const char* name;
  bool reverse, bias;
  std::vector<I> lengths;
  I steps, batch, inputs, hidden;
};

I gates(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
const char* name_of(Cell cell) {
  switch (cell) {
    case Cell::lstm: return "lstm";
    case Cell::gru: return "gru";
    case Cell::tanh: return "rnn_tanh";
    default: return "rnn_relu";
  }
}

/// Returns the output, h_n and, for an LSTM, c_n.
std::vector<Tensor> run(Cell cell, T x, T h, T c, const RnnWeights& w, const RnnOptions& options) {
  if (cell == Cell::lstm) {
    const LstmResult y = lstm(x, h, c, w, options);
    return {y.output, y.h_n, y.c_n};
  }
  const RnnResult y = cell == Cell::gru    ? gru(x, h, w, options)
                      : cell == Cell::tanh ? rnn_tanh(x, h, w, options)
                                           : rnn_relu(x, h, w, options);
  return {y.output, y.h_n};
}

/// The inputs are x, h_0, (LSTM: c_0,) w_ih, w_hh, b_ih, b_hh.
std::vector<Tensor> call(Cell cell, const Variant& v, Tensors t) {
  const std::size_t first = cell == Cell::lstm ? 3 : 2;
  const RnnWeights w{t.at(first), t.at(first + 1), v.bias ? t.at(first + 2) : Tensor(),
                     v.bias ? t.at(first + 3) : Tensor()};
  return run(cell, t[0], t[1], t[2], w,
             {v.reverse, v.lengths.empty() ? Tensor() : tensor(v.lengths)});
}

std::vector<Array> expected(Cell cell, const Variant& v, Arrays a) {
  const std::size_t first = cell == Cell::lstm ? 3 : 2;
  const Array none(Sizes{0});
  const reference::RecurrentResult y = reference::recurrent(
      cell, a[0], a[1], cell == Cell::lstm ? a[2] : a[1], a[first], a[first + 1],
      v.bias ? a[first + 2] : none, v.bias ? a[first + 3] : none, v.reverse, v.lengths);
  if (cell == Cell::lstm) return {y.output, y.h, y.c};
  return {y.output, y.h};
}

/// Returns the call in PyTorch, which has no reverse-only direction, and lengths only when packed.
std::string in_torch(Cell cell, const Variant& v) {
  if (!v.lengths.empty()) return "";
  const bool lstm = cell == Cell::lstm;
  const std::string first = lstm ? "x3" : "x2", second = lstm ? "x4" : "x3";
  const std::string biases = !v.bias ? "" : lstm ? ", x5, x6" : ", x4, x5";
  const std::string made =
      str("torch.", name_of(cell), "(", v.reverse ? "x0.flip(0)" : "x0", ", ",
          lstm ? "[x1.unsqueeze(0), x2.unsqueeze(0)]" : "x1.unsqueeze(0)", ", [", first, ", ",
          second, biases, "]", v.bias ? ", True" : ", False", ", 1, 0.0, False, False, False)");
  const std::string rows = str("(", gates(cell), " * x1.shape[1], ");
  return str("(fits(", first, ".shape == ", rows, "x0.shape[2]), ", second, ".shape == ", rows,
             "x1.shape[1])) or (lambda y: (", v.reverse ? "y[0].flip(0)" : "y[0]", ", y[1][0]",
             lstm ? ", y[2][0]" : "", "))(", made, "))");
}

struct Parts {
  Tensor x, h, c;
  RnnWeights w;
  RnnOptions options;
};
/// One invalid argument. In texts, G is the number of rows of all gates, # the number of gates.
struct Wrong {
  const char* argument;
  const char *type, *text;
  void (*spoil)(Parts&, I g);
};
using P = Parts&;
const Wrong kWrong[] = {
    {"x", kShape, R"(x \[steps, batch, inputs\], got \[2, 4\])",
     [](P p, I) { p.x = ones_of({2, 4}); }},
    {"x", kShape, R"(at least one step, got x \[0, 3, 4\])",
     [](P p, I) { p.x = ones_of({0, 3, 4}); }},
    {"x", kType, "a floating point tensor, got int64",
     [](P p, I) { p.x = ones_of({2, 3, 4}, DType::int64); }},
    {"x", kShape, R"(w_ih \[G, 7\] for x \[2, 3, 7\], got \[G, 4\])",
     [](P p, I) { p.x = ones_of({2, 3, 7}); }},
    {"h_0", kShape, R"(h_0 \[3, 5\] for x \[2, 3, 4\], got \[2, 5\])",
     [](P p, I) { p.h = ones_of({2, 5}); }},
    {"h_0", kShape, R"(h_0 \[3, 5\] for x \[2, 3, 4\], got \[1, 3, 5\])",
     [](P p, I) { p.h = ones_of({1, 3, 5}); }},
    {"h_0", kType, "one dtype, got float32 and float64",
     [](P p, I) { p.h = ones_of({3, 5}, DType::float64); }},
    {"weights", kShape, R"(w_hh \[# \* hidden, hidden\], got)",
     [](P p, I g) { p.w.w_hh = ones_of({g + 1, 5}); }},
    {"weights", kShape, "w_ih", [](P p, I g) { p.w.w_ih = ones_of({g, 3}); }},
    {"weights", kArgument, "both biases or none, got one", [](P p, I) { p.w.b_hh = {}; }},
    {"weights", kShape, "b_ih", [](P p, I) { p.w.b_ih = ones_of({2}); }},
    {"weights", kType, "one dtype, got float32 and float64",
     [](P p, I g) { p.w.b_hh = ones_of({g}, DType::float64); }},
    {"lengths", kIndex, R"(lengths in \[0, 2\], got 3 at position 1)",
     [](P p, I) { p.options.lengths = tensor({1, 3, 2}); }},
    {"lengths", kIndex, R"(lengths in \[0, 2\], got -1 at position 2)",
     [](P p, I) { p.options.lengths = tensor({1, 1, -1}); }},
    {"lengths", kShape, R"(lengths \[3\] for x \[2, 3, 4\], got \[2\])",
     [](P p, I) { p.options.lengths = tensor({1, 2}); }},
    {"lengths", kType, "int64 lengths, got float32",
     [](P p, I) { p.options.lengths = ones_of({3}); }},
    {"c_0", kShape, R"(c_0 \[3, 5\] for x \[2, 3, 4\], got \[3, 4\])",
     [](P p, I) { p.c = ones_of({3, 4}); }},
    {"c_0", kShape, R"(c_0 \[3, 5\] for x \[2, 3, 4\], got \[3\])",
     [](P p, I) { p.c = ones_of({3}); }},
    {"c_0", kType, "one dtype, got float32 and float16",
     [](P p, I) { p.c = ones_of({3, 5}, DType::float16); }},
};

void add_errors(Cases& list, Cell cell) {
  const I g = gates(cell) * 5;
  for (const Wrong& wrong : kWrong) {
    if (wrong.argument[0] == 'c' && cell != Cell::lstm) continue;
    const std::string text = std::regex_replace(
        std::regex_replace(wrong.text, std::regex("G"), str(g)), std::regex("#"), str(g / 5));
    BadInputs(list, name_of(cell)).of(wrong.argument).is(wrong.type, text, [=, f = wrong.spoil] {
      Parts p{ones_of({2, 3, 4}),
              ones_of({3, 5}),
              ones_of({3, 5}),
              {ones_of({g, 4}), ones_of({g, 5}), ones_of({g}), ones_of({g})},
              {}};
      f(p, g);
      (void)run(cell, p.x, p.h, p.c, p.w, p.options);
    });
  }
}

const std::vector<Variant> kVariants{{"", false, true, {}, 3, 2, 3, 2},
                                     {"reverse", true, true, {}, 3, 2, 1, 2},
                                     {"no bias", false, false, {}, 2, 2, 2, 1},
                                     {"lengths", false, true, {1, 3, 0}, 3, 3, 1, 1},
                                     {"lengths, reverse", true, true, {1, 3, 2}, 3, 3, 1, 1},
                                     {"one step of one unit", false, true, {}, 1, 2, 1, 1},
                                     {"no inputs", false, true, {}, 2, 2, 0, 1},
                                     {"no sequences", true, true, {}, 2, 0, 3, 1}};

}  // namespace

void add_rnn_cases(Cases& list) {
  for (const Cell cell : {Cell::lstm, Cell::gru, Cell::tanh, Cell::relu}) {
    for (const Variant& v : kVariants) {
      const I width = gates(cell) * v.hidden;
      OpCase& c = push(list, name_of(cell), v.name, in_torch(cell, v),
                       {{{v.steps, v.batch, v.inputs}}, {{v.batch, v.hidden}}}, kFloats,
                       Accuracy::tolerance);
      if (cell == Cell::lstm) c.inputs.push_back({{v.batch, v.hidden}});
      c.inputs.push_back({{width, v.inputs}});
      c.inputs.push_back({{width, v.hidden}});
      if (v.bias) c.inputs.insert(c.inputs.end(), {{{width}}, {{width}}});
      c.call = [cell, v](Tensors t) { return call(cell, v, t); };
      c.expected = [cell, v](Arrays a) { return expected(cell, v, a); };
    }
    add_errors(list, cell);
  }
  parameters(list,
             "gru(x h_0 weights options) lstm(x h_0 c_0 weights options) "
             "rnn_relu(x h_0 weights options) rnn_tanh(x h_0 weights options)");
}

}  // namespace braid::test
