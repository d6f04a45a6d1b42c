#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <braid/core/kernel_args/rnn.hpp>
#include <braid/core/ops/rnn.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/parameter_dict.hpp>

// Recurrent layers. Parameters are named, shaped and ordered as PyTorch's: weight_ih_l0 [G H, I],
// weight_hh_l0 [G H, H], bias_ih_l0, bias_hh_l0 [G H], then those of the other direction with
// _reverse, then those of layer 1, whose input is H or, bidirectional, 2 H wide. They start uniform
// in [-1/√H, 1/√H).
namespace braid::nn {

enum class Nonlinearity : std::uint8_t { tanh, relu };

struct LSTMOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  /// x and output [B, T, ..] instead of [T, B, ..]; states stay [layers, B, H]
  bool batch_first = false;
  double dropout = 0;  ///< of the outputs of all layers but the last, while training
  bool bidirectional = false;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};  ///< floating point
};
using GRUOptions = LSTMOptions;
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

/// The state between two calls: a tree, so that DataParallel can cut it along dim 1.
struct LSTMState {
  Tensor h, c;
  BRAID_FIELDS(h, c)
};
struct LSTMOutput {
  Tensor output, h_n, c_n;
  [[nodiscard]] LSTMState state() const { return {h_n, c_n}; }
  BRAID_FIELDS(output, h_n, c_n)
};
struct RNNOutput {
  Tensor output, h_n;
  BRAID_FIELDS(output, h_n)
};

/// What RNN, LSTM and GRU share.
struct Recurrent : Module {
  ParameterDict weights;
  std::int64_t input_size, hidden_size, num_layers;
  bool bias, batch_first, bidirectional;
  double dropout;
  RnnKind kind;

  /// What stands in the brackets when the layer is printed.
  [[nodiscard]] std::string extra() const;

 protected:
  Recurrent(const char* name, RnnKind k, std::int64_t input, std::int64_t hidden,
            const LSTMOptions& options);
  [[nodiscard]] LSTMOutput run(const char* name, const Tensor& x, const Tensor& h, const Tensor& c,
                               const Tensor& lengths) const;
};

/// Long short-term memory, of several layers, in one direction or both (formulas: braid::lstm).
///
/// Shapes    x [T, B, input_size], or [B, T, input_size] with batch_first, or [T, input_size] for
///           one sequence; with L = num_layers × directions: state h and c [L, B, H], zeros if
///           undefined; lengths [B] int64 → output [T, B, H × directions], h_n and c_n [L, B, H].
///           One sequence: without the B
/// Lengths   sequence b has lengths[b] steps, in any order: its output is 0 from there on, its last
///           state is its own and the reverse direction starts at its last step, as PyTorch has it
///           with pack_padded_sequence (where a length of 0 is an error: here that sequence keeps
///           its state)
/// Gradient  to x, state and parameters, of any order
/// Throws    ArgumentError for sizes below 1 (hidden_size, num_layers) or 0, dropout outside [0,
///           1]; in a call as braid::lstm
struct LSTM : Recurrent {
  LSTM(std::int64_t input, std::int64_t hidden, const LSTMOptions& options = {});
  [[nodiscard]] LSTMOutput operator()(const Tensor& x, const LSTMState& state = {},
                                      const Tensor& lengths = {}) const;
  BRAID_UNNAMED_FIELD(weights)
};

/// Gated recurrent units (formulas: braid::gru). As LSTM, with one state.
struct GRU : Recurrent {
  GRU(std::int64_t input, std::int64_t hidden, const GRUOptions& options = {});
  [[nodiscard]] RNNOutput operator()(const Tensor& x, const Tensor& h = {},
                                     const Tensor& lengths = {}) const;
  BRAID_UNNAMED_FIELD(weights)
};

/// h' = tanh(W x + b_ih + U h + b_hh), or relu. As LSTM, with one state.
struct RNN : Recurrent {
  RNN(std::int64_t input, std::int64_t hidden, const RNNOptions& options = {});
  [[nodiscard]] RNNOutput operator()(const Tensor& x, const Tensor& h = {},
                                     const Tensor& lengths = {}) const;
  BRAID_UNNAMED_FIELD(weights)
};

struct RNNCellOptions {
  bool bias = true;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
struct LSTMCellOptions {
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
using GRUCellOptions = LSTMCellOptions;

/// One step of an RNN. Shapes: x [B, input_size] or [input_size], h [B, H] or [H] (zeros if
/// undefined) → the same as h.
struct RNNCell : Module {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;
  Nonlinearity nonlinearity;

  RNNCell(std::int64_t input, std::int64_t hidden, const RNNCellOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& h = {}) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)
};

/// One step of an LSTM, as RNNCell: from {h, c} to {h, c}.
struct LSTMCell : Module {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

  LSTMCell(std::int64_t input, std::int64_t hidden, const LSTMCellOptions& options = {});
  [[nodiscard]] LSTMState operator()(const Tensor& x, const LSTMState& state = {}) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)
};

/// One step of a GRU, as RNNCell.
struct GRUCell : Module {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

  GRUCell(std::int64_t input, std::int64_t hidden, const GRUCellOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& h = {}) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)
};

}  // namespace braid::nn
