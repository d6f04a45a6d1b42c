#pragma once
#include <braid/core/internal/tree/fields.hpp>
#include <braid/core/tensor.hpp>

// Recurrent layers over whole sequences: one layer in one direction, from which nn::RNN, nn::LSTM
// and nn::GRU are built. T is the number of steps, B the batch size, I the input size and H the
// size of the state.
namespace braid {

/// The weights of a recurrent layer, as PyTorch's, with G gates (lstm 4: i, f, g, o; gru 3: r, z,
/// n; rnn 1).
struct RnnWeights {
  Tensor w_ih;        ///< [G H, I]
  Tensor w_hh;        ///< [G H, H]
  Tensor b_ih, b_hh;  ///< [G H] both, or both undefined
  BRAID_FIELDS_DECLARED(w_ih, w_hh, b_ih, b_hh)
};

/// The options of lstm, gru, rnn_tanh and rnn_relu.
struct RnnOptions {
  bool reverse = false;  ///< from the last step to the first
  /// int64 [B], on the CPU or on x's device: sequence b has lengths[b] steps. After these steps its
  /// output is 0 and its state stays the same. With `reverse`, it starts at the last of these
  /// steps. Lengths on the CPU must be in [0, T]; on another device, a length below 0 counts as 0
  /// and one above T as T.
  Tensor lengths = {};
};

/// The result of gru, rnn_tanh and rnn_relu.
struct RnnResult {
  Tensor output;  ///< [T, B, H]: h of every step
  /// [B, H]: the state after the last computed step: that at time T - 1, or at lengths[b] - 1 for
  /// sequence b; with `reverse`, that at time 0
  Tensor h_n;
  BRAID_FIELDS_DECLARED(output, h_n)
};
/// The result of lstm: as RnnResult, and the last cell state c_n [B, H].
struct LstmResult {
  Tensor output, h_n, c_n;
  BRAID_FIELDS_DECLARED(output, h_n, c_n)
};

/// Long short-term memory: i, f, o = σ(W x + U h + b), g = tanh(W x + U h + b),
/// c' = f c + i g, h' = o tanh(c').
///
/// Shapes    x [T, B, I] with T >= 1, h_0 and c_0 [B, H], weights as in RnnWeights → output [T, B,
///           H], h_n and c_n [B, H]
/// Types     one floating-point dtype for all; float16 and bfloat16 are converted to float32 first,
///           so that states keep their digits from step to step, and the results are rounded once
/// Cost      one product for the inputs of all steps, then one product and one fused kernel per
///           step. The backward costs the same per step; the gradient of each weight is one product
///           over all steps
/// Gradient  backward through time. With create_graph the gradient consists of recorded ops, step
///           by step, so that gradients of any order exist; the forward is then run a second time
/// Throws    ShapeError, DTypeError, DeviceError; ArgumentError if only one of the biases is
///           defined; IndexError for a length on the CPU outside [0, T]
/// Source    Hochreiter & Schmidhuber 1997; Gers, Schmidhuber & Cummins 2000 (forget gate)
[[nodiscard]] LstmResult lstm(const Tensor& x, const Tensor& h_0, const Tensor& c_0,
                              const RnnWeights& weights, const RnnOptions& options = {});

/// Gated recurrent unit: r, z = σ(W x + b_ih + U h + b_hh), n = tanh(W x + b_ih + r (U h + b_hh)),
/// h' = (1 - z) n + z h. As lstm, without c.
///
/// Source    Cho et al. 2014, arXiv:1406.1078, but with the reset gate after the hidden product, as
///           in PyTorch and cuDNN
[[nodiscard]] RnnResult gru(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
                            const RnnOptions& options = {});

/// h' = tanh(W x + U h + b). As lstm, without c.
///
/// Source    Elman 1990
[[nodiscard]] RnnResult rnn_tanh(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
                                 const RnnOptions& options = {});
/// h' = relu(W x + U h + b). As rnn_tanh.
[[nodiscard]] RnnResult rnn_relu(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
                                 const RnnOptions& options = {});

}  // namespace braid
