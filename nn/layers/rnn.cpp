#include <algorithm>
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/dropout.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/pad.hpp>
#include <braid/core/random.hpp>
#include <braid/nn/rnn.hpp>

#include "layers/call.hpp"

namespace braid::nn {
namespace {

using Kind = Recurrent::Kind;

constexpr std::int64_t kMostLayers = 1'000;

std::int64_t gates_of(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }

/// The suffix of a layer and direction in parameter names: `_l0`, `_l0_reverse`.
std::string suffix(std::int64_t layer, bool reverse) {
  return str("_l", layer, reverse ? "_reverse" : "");
}

LstmResult step_through(Kind kind, const Tensor& x, const Tensor& h, const Tensor& c,
                        const RnnWeights& w, const RnnOptions& options) {
  if (kind == Kind::lstm) return lstm(x, h, c, w, options);
  const RnnResult y = kind == Kind::gru    ? gru(x, h, w, options)
                      : kind == Kind::tanh ? rnn_tanh(x, h, w, options)
                                           : rnn_relu(x, h, w, options);
  return {y.output, y.h_n, {}};
}

Kind kind_of(Nonlinearity f) { return f == Nonlinearity::tanh ? Kind::tanh : Kind::relu; }

/// Checks the sizes of a layer or cell, including that no parameter has too many elements. A second
/// layer may read the outputs of two directions.
void check_sizes(const char* name, Kind kind, std::int64_t input, std::int64_t hidden) {
  if (input < 0) throw ArgumentError(str(name, ": expected input_size >= 0, got ", input));
  if (hidden < 1) throw ArgumentError(str(name, ": expected hidden_size >= 1, got ", hidden));
  (void)checked_numel(name, {gates_of(kind), hidden, input}, 8);  // bytes of the widest dtype
  (void)checked_numel(name, {2, gates_of(kind), hidden, hidden}, 8);
}

}  // namespace

Recurrent::Recurrent(const char* name, Kind k, std::int64_t input, std::int64_t hidden,
                     const LSTMOptions& options)
    : input_size(input),
      hidden_size(hidden),
      num_layers(options.num_layers),
      bias(options.bias),
      batch_first(options.batch_first),
      bidirectional(options.bidirectional),
      dropout(options.dropout),
      kind(k) {
  check_sizes(name, k, input, hidden);
  if (num_layers < 1)
    throw ArgumentError(str(name, ": expected num_layers >= 1, got ", num_layers));
  if (num_layers > kMostLayers)
    throw ArgumentError(str(name, ": expected num_layers <= ", kMostLayers, ", got ", num_layers));
  if (!(dropout >= 0 && dropout <= 1))
    throw ArgumentError(str(name, ": expected dropout in [0, 1], got ", dropout));
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const FactoryOptions made{.device = options.device, .dtype = options.dtype};
  const std::int64_t directions = bidirectional ? 2 : 1, width = gates_of(kind) * hidden;
  for (std::int64_t layer = 0; layer < num_layers; ++layer)
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::string end = suffix(layer, direction == 1);
      weights.insert("weight_ih" + end,
                     Parameter(uniform({width, layer == 0 ? input : hidden * directions}, -bound,
                                       bound, made)));
      weights.insert("weight_hh" + end, Parameter(uniform({width, hidden}, -bound, bound, made)));
      if (!bias) continue;
      weights.insert("bias_ih" + end, Parameter(uniform({width}, -bound, bound, made)));
      weights.insert("bias_hh" + end, Parameter(uniform({width}, -bound, bound, made)));
    }
}

std::string Recurrent::extra() const {
  if (weights.empty()) return "moved from";
  std::string text = str(input_size, ", ", hidden_size);
  if (num_layers != 1) text += str(", num_layers=", num_layers);
  if (!bias) text += ", bias=false";
  if (batch_first) text += ", batch_first=true";
  if (dropout != 0) text += str(", dropout=", dropout);
  if (bidirectional) text += ", bidirectional=true";
  return text;
}

LSTMOutput Recurrent::run(const char* name, const Tensor& x, const Tensor& h, const Tensor& c,
                          const Tensor& lengths) const {
  const bool one = x.dim() == 2;  // one sequence without a batch
  if ((!one && x.dim() != 3) || x.shape().back() != input_size)
    throw ShapeError(str(name, ": expected x [", batch_first ? "batch, steps, " : "steps, batch, ",
                         input_size, "] or [steps, ", input_size, "], got ", x.shape()));
  Tensor input = one ? x.unsqueeze(1) : batch_first ? x.transpose(0, 1) : x;
  const std::int64_t directions = bidirectional ? 2 : 1;
  const Shape whole{num_layers * directions, input.shape()[1], hidden_size};
  const auto state = [&](const char* what, const Tensor& given) {
    if (!given.defined()) return zeros(whole, {.device = x.device(), .dtype = x.dtype()});
    const Shape expected = one ? Shape{whole[0], hidden_size} : whole;
    if (given.shape() != expected)
      throw ShapeError(str(name, ": expected ", what, " ", expected, " for x ", x.shape(), ", got ",
                           given.shape()));
    return one ? given.unsqueeze(1) : given;
  };
  const Tensor h_0 = state("h", h), c_0 = kind == Kind::lstm ? state("c", c) : Tensor();
  std::vector<Tensor> h_n, c_n;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::string end = suffix(layer, direction == 1);
      const auto bias_of = [&](const char* which) {
        return bias ? Tensor(weights.at(which + end)) : Tensor();
      };
      const RnnWeights w{weights.at("weight_ih" + end), weights.at("weight_hh" + end),
                         bias_of("bias_ih"), bias_of("bias_hh")};
      const std::int64_t place = layer * directions + direction;
      const LstmResult y =
          step_through(kind, input, h_0[place], c_0.defined() ? c_0[place] : Tensor(), w,
                       {.reverse = direction == 1, .lengths = lengths});
      outputs.push_back(y.output);
      h_n.push_back(y.h_n);
      if (y.c_n.defined()) c_n.push_back(y.c_n);
    }
    input = bidirectional ? cat(outputs, 2) : outputs[0];
    if (dropout > 0 && training && layer + 1 < num_layers) input = braid::dropout(input, dropout);
  }
  LSTMOutput y{input, stack(h_n), c_n.empty() ? Tensor() : stack(c_n)};
  if (one)
    return {y.output.squeeze(1), y.h_n.squeeze(1), y.c_n.defined() ? y.c_n.squeeze(1) : Tensor()};
  if (batch_first) y.output = y.output.transpose(0, 1);
  return y;
}

LSTM::LSTM(std::int64_t input, std::int64_t hidden, const LSTMOptions& options)
    : Recurrent("LSTM", Kind::lstm, input, hidden, options) {}
LSTMOutput LSTM::forward(const Tensor& x, const LSTMState& state, const Tensor& lengths) const {
  return run("LSTM", x, state.h, state.c, lengths);
}
BRAID_LAYER_CALL(LSTMOutput, LSTM, (const Tensor& x, const LSTMState& state, const Tensor& lengths),
                 (x, state, lengths))

GRU::GRU(std::int64_t input, std::int64_t hidden, const GRUOptions& options)
    : Recurrent("GRU", Kind::gru, input, hidden, options) {}
RNNOutput GRU::forward(const Tensor& x, const Tensor& h, const Tensor& lengths) const {
  const LSTMOutput y = run("GRU", x, h, {}, lengths);
  return {y.output, y.h_n};
}
BRAID_LAYER_CALL(RNNOutput, GRU, (const Tensor& x, const Tensor& h, const Tensor& lengths),
                 (x, h, lengths))

RNN::RNN(std::int64_t input, std::int64_t hidden, const RNNOptions& o)
    : Recurrent(
          "RNN", kind_of(o.nonlinearity), input, hidden,
          {o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional, o.device, o.dtype}) {}
RNNOutput RNN::forward(const Tensor& x, const Tensor& h, const Tensor& lengths) const {
  const LSTMOutput y = run("RNN", x, h, {}, lengths);
  return {y.output, y.h_n};
}
BRAID_LAYER_CALL(RNNOutput, RNN, (const Tensor& x, const Tensor& h, const Tensor& lengths),
                 (x, h, lengths))

// ---- cells

namespace {

/// Makes a cell's parameters, in PyTorch's order.
template <class Cell, class Options>
void make_cell(const char* name, Cell& cell, Kind kind, std::int64_t input, std::int64_t hidden,
               const Options& options) {
  check_sizes(name, kind, input, hidden);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const FactoryOptions made{.device = options.device, .dtype = options.dtype};
  const std::int64_t width = gates_of(kind) * hidden;
  cell.weight_ih = Parameter(uniform({width, input}, -bound, bound, made));
  cell.weight_hh = Parameter(uniform({width, hidden}, -bound, bound, made));
  if (!options.bias) return;
  cell.bias_ih = Parameter(uniform({width}, -bound, bound, made));
  cell.bias_hh = Parameter(uniform({width}, -bound, bound, made));
}

/// Runs a cell as a sequence of one step.
template <class Cell>
LSTMState step(const char* name, const Cell& cell, Kind kind, const Tensor& x, const Tensor& h,
               const Tensor& c) {
  const std::int64_t input = cell.weight_ih.size(1), hidden = cell.weight_hh.size(1);
  const bool one = x.dim() == 1;
  if ((!one && x.dim() != 2) || x.shape().back() != input)
    throw ShapeError(
        str(name, ": expected x [batch, ", input, "] or [", input, "], got ", x.shape()));
  const Tensor rows = one ? x.unsqueeze(0) : x;
  const Shape whole{rows.shape()[0], hidden};
  const auto state = [&](const char* what, const Tensor& given) {
    if (!given.defined()) return zeros(whole, {.device = x.device(), .dtype = x.dtype()});
    const Shape expected = one ? Shape{hidden} : whole;
    if (given.shape() != expected)
      throw ShapeError(str(name, ": expected ", what, " ", expected, " for x ", x.shape(), ", got ",
                           given.shape()));
    return one ? given.unsqueeze(0) : given;
  };
  const LstmResult y = step_through(
      kind, rows.unsqueeze(0), state("h", h), kind == Kind::lstm ? state("c", c) : Tensor(),
      {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh}, {});
  if (!one) return {y.h_n, y.c_n};
  return {y.h_n.squeeze(0), y.c_n.defined() ? y.c_n.squeeze(0) : Tensor()};
}

template <class Cell> std::string cell_extra(const Cell& cell) {
  if (!cell.weight_ih.defined()) return "moved from";
  return str(cell.weight_ih.size(1), ", ", cell.weight_hh.size(1),
             cell.bias_ih.defined() ? "" : ", bias=false");
}

}  // namespace

RNNCell::RNNCell(std::int64_t input, std::int64_t hidden, const RNNCellOptions& options)
    : input_size(input), hidden_size(hidden), nonlinearity(options.nonlinearity) {
  make_cell("RNNCell", *this, Kind::tanh, input, hidden, options);
}
Tensor RNNCell::forward(const Tensor& x, const Tensor& h) const {
  return step("RNNCell", *this, kind_of(nonlinearity), x, h, {}).h;
}
BRAID_LAYER_CALL(Tensor, RNNCell, (const Tensor& x, const Tensor& h), (x, h))
std::string RNNCell::extra() const {
  return cell_extra(*this) +
         (weight_ih.defined() && nonlinearity == Nonlinearity::relu ? ", nonlinearity=relu" : "");
}

LSTMCell::LSTMCell(std::int64_t input, std::int64_t hidden, const LSTMCellOptions& options)
    : input_size(input), hidden_size(hidden) {
  make_cell("LSTMCell", *this, Kind::lstm, input, hidden, options);
}
LSTMState LSTMCell::forward(const Tensor& x, const LSTMState& state) const {
  return step("LSTMCell", *this, Kind::lstm, x, state.h, state.c);
}
BRAID_LAYER_CALL(LSTMState, LSTMCell, (const Tensor& x, const LSTMState& state), (x, state))
std::string LSTMCell::extra() const { return cell_extra(*this); }

GRUCell::GRUCell(std::int64_t input, std::int64_t hidden, const GRUCellOptions& options)
    : input_size(input), hidden_size(hidden) {
  make_cell("GRUCell", *this, Kind::gru, input, hidden, options);
}
Tensor GRUCell::forward(const Tensor& x, const Tensor& h) const {
  return step("GRUCell", *this, Kind::gru, x, h, {}).h;
}
BRAID_LAYER_CALL(Tensor, GRUCell, (const Tensor& x, const Tensor& h), (x, h))
std::string GRUCell::extra() const { return cell_extra(*this); }

BRAID_FIELDS_DEFINED(LSTMState, h, c)
BRAID_FIELDS_DEFINED(LSTMOutput, output, h_n, c_n)
BRAID_FIELDS_DEFINED(RNNOutput, output, h_n)
BRAID_FIELDS_DEFINED(RNNCell, weight_ih, weight_hh, bias_ih, bias_hh)
BRAID_FIELDS_DEFINED(LSTMCell, weight_ih, weight_hh, bias_ih, bias_hh)
BRAID_FIELDS_DEFINED(GRUCell, weight_ih, weight_hh, bias_ih, bias_hh)

}  // namespace braid::nn

braid::Tensor braid::nn::utils::rnn::pad_sequence(const std::vector<Tensor>& sequences,
                                                  bool batch_first, double padding_value) {
  if (sequences.empty())
    throw ArgumentError("pad_sequence: expected at least one sequence, got none");
  std::int64_t longest = 0;
  for (const Tensor& t : sequences) {
    if (t.dim() == 0) throw ShapeError("pad_sequence: expected sequences, got a scalar");
    longest = std::max(longest, t.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& t : sequences) {
    std::vector<std::int64_t> ends(static_cast<std::size_t>(2 * t.dim()), 0);
    ends.back() = longest - t.size(0);  // pad begins with the last dim
    padded.push_back(pad(t, ends, PadMode::constant, padding_value));
  }
  return stack(padded, batch_first ? 0 : 1);
}
