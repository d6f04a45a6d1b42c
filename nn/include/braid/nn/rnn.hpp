#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <braid/core/ops/rnn.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/parameter_dict.hpp>

// Recurrent layers. Names, shapes and order of the parameters are PyTorch's, with G gates:
// weight_ih_l0 [G H, I], weight_hh_l0 [G H, H], bias_ih_l0, bias_hh_l0 [G H], then those of the
// reverse direction with the suffix _reverse, then those of layer 1, whose input is H or, if
// bidirectional, 2 H wide. Initial values are uniform in [-1/√H, 1/√H).
namespace braid::nn {

/// The function of an RNN's state.
enum class Nonlinearity : std::uint8_t { tanh, relu };

/// The options of LSTM, and as GRUOptions those of GRU.
struct LSTMOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  /// x and output are [B, T, ..] instead of [T, B, ..]; states stay [layers, B, H].
  bool batch_first = false;
  double dropout = 0;  ///< of the outputs of all layers except the last, in training
  bool bidirectional = false;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};
using GRUOptions = LSTMOptions;
/// The options of RNN: those of LSTM, and the nonlinearity.
struct RNNOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// The state between two calls. It is a tree, so that DataParallel can split it along dim 1.
struct LSTMState {
  Tensor h, c;
  BRAID_FIELDS_DECLARED(h, c)
};
/// The result of an LSTM; shapes as there.
struct LSTMOutput {
  Tensor output, h_n, c_n;
  /// The argument for the next call.
  [[nodiscard]] LSTMState state() const { return {h_n, c_n}; }
  BRAID_FIELDS_DECLARED(output, h_n, c_n)
};
/// The result of a GRU or an RNN; shapes as in LSTM.
struct RNNOutput {
  Tensor output, h_n;
  BRAID_FIELDS_DECLARED(output, h_n)
};

/// The common part of RNN, LSTM and GRU.
struct Recurrent : Module {
  enum class Kind : std::uint8_t { tanh, relu, lstm, gru };

  ParameterDict weights;
  std::int64_t input_size, hidden_size, num_layers;
  bool bias, batch_first, bidirectional;
  double dropout;
  Kind kind;

  /// The text inside the brackets when the layer is printed.
  [[nodiscard]] std::string extra() const;

 protected:
  Recurrent(const char* name, Kind k, std::int64_t input_size, std::int64_t hidden_size,
            const LSTMOptions& options);
  [[nodiscard]] LSTMOutput run(const char* name, const Tensor& x, const Tensor& h, const Tensor& c,
                               const Tensor& lengths) const;
};

/// Long short-term memory with one or more layers, in one direction or both (formulas:
/// braid::lstm).
///
/// Shapes    x [T, B, input_size]; [B, T, input_size] with batch_first; [T, input_size] for one
///           sequence. State h and c [L, B, H], L = num_layers × directions, zeros if undefined.
///           lengths [B] int64, optional. Results: output [T, B, H × directions] ([B, T, ..] with
///           batch_first), h_n and c_n [L, B, H]. For one sequence the states and the results have
///           no B
/// Lengths   sequence b has lengths[b] steps; the lengths may be in any order. Its output is 0
///           after these, its final state is the one after its own last step, and the reverse
///           direction starts at its last step, as in PyTorch with pack_padded_sequence. A sequence
///           of length 0 keeps its state (an error in PyTorch)
/// Gradient  to x, state and parameters, of any order
/// Throws    ArgumentError if input_size < 0, hidden_size < 1, num_layers is not in [1, 1000] or
///           dropout is not in [0, 1]. A call throws ShapeError if x or a state does not fit, and
///           what braid::lstm throws
///
///     const nn::LSTM lstm(32, 64, {.num_layers = 2, .batch_first = true});
///     const auto [output, h_n, c_n] = lstm(randn({8, 35, 32}));  // [8, 35, 64] and 2 × [2, 8, 64]
struct LSTM : Recurrent {
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const LSTMOptions& options = {});
  BRAID_FORWARD(LSTMOutput,
                (const Tensor& x, const LSTMState& state = {}, const Tensor& lengths = {}))
  BRAID_UNNAMED_FIELD(weights)
};

/// Gated recurrent units (formulas: braid::gru). Otherwise as LSTM, but with one state.
///
///     const nn::GRU gru(32, 64, {.bidirectional = true});
///     const Tensor lengths = tensor({35, 20});
///     const auto [output, h_n] = gru(randn({35, 2, 32}), {}, lengths);  // output [35, 2, 128]
struct GRU : Recurrent {
  GRU(std::int64_t input_size, std::int64_t hidden_size, const GRUOptions& options = {});
  BRAID_FORWARD(RNNOutput, (const Tensor& x, const Tensor& h = {}, const Tensor& lengths = {}))
  BRAID_UNNAMED_FIELD(weights)
};

/// h' = tanh(W x + b_ih + U h + b_hh), or relu instead of tanh. Otherwise as LSTM, but with one
/// state.
struct RNN : Recurrent {
  RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options = {});
  BRAID_FORWARD(RNNOutput, (const Tensor& x, const Tensor& h = {}, const Tensor& lengths = {}))
  BRAID_UNNAMED_FIELD(weights)
};

/// The options of RNNCell.
struct RNNCellOptions {
  bool bias = true;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
/// The options of LSTMCell, and as GRUCellOptions those of GRUCell.
struct LSTMCellOptions {
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
using GRUCellOptions = LSTMCellOptions;

/// One step of an RNN.
///
/// Shapes    x [B, input_size] or [input_size], h [B, H] or [H] (zeros if undefined) → the shape of
///           h
struct RNNCell : Module {
  std::int64_t input_size, hidden_size;
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;
  Nonlinearity nonlinearity;

  RNNCell(std::int64_t input_size, std::int64_t hidden_size, const RNNCellOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x, const Tensor& h = {}))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight_ih, weight_hh, bias_ih, bias_hh)
};

/// One step of an LSTM, from {h, c} to {h, c}. Shapes as RNNCell.
///
///     const nn::LSTMCell cell(32, 64);
///     nn::LSTMState state;
///     for (const Tensor& step : unbind(randn({35, 8, 32}))) state = cell(step, state);
struct LSTMCell : Module {
  std::int64_t input_size, hidden_size;
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const LSTMCellOptions& options = {});
  BRAID_FORWARD(LSTMState, (const Tensor& x, const LSTMState& state = {}))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight_ih, weight_hh, bias_ih, bias_hh)
};

/// One step of a GRU. Shapes as RNNCell.
struct GRUCell : Module {
  std::int64_t input_size, hidden_size;
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

  GRUCell(std::int64_t input_size, std::int64_t hidden_size, const GRUCellOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x, const Tensor& h = {}))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight_ih, weight_hh, bias_ih, bias_hh)
};

}  // namespace braid::nn

namespace braid::nn::utils::rnn {

/// Sequences of their own lengths in one tensor: each is extended at its end with a number.
///
/// Shapes    sequence i is [length i, ..], with the same other sizes; the result is
///           [longest, n, ..], or [n, longest, ..] with batch_first
/// Throws    ArgumentError for no sequence; ShapeError for a scalar, and for other sizes
///
///     const Tensor x = nn::utils::rnn::pad_sequence({rand({3, 8}), rand({5, 8})}, true);
[[nodiscard]] Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false,
                                  double padding_value = 0);

}  // namespace braid::nn::utils::rnn
