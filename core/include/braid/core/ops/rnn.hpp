#pragma once
#include <braid/core/tensor.hpp>
#include <braid/core/tree/fields.hpp>

// Recurrent layers over whole sequences: one layer in one direction. nn::RNN, nn::LSTM and nn::GRU
// are made of them.
namespace braid {

/// What a recurrent layer has beside its input and state; as PyTorch's, with G gates (lstm 4: i, f,
/// g, o; gru 3: r, z, n; rnn 1).
struct RnnWeights {
  Tensor w_ih;        ///< [G H, I]
  Tensor w_hh;        ///< [G H, H]
  Tensor b_ih, b_hh;  ///< [G H] both, or both undefined
  BRAID_FIELDS(w_ih, w_hh, b_ih, b_hh)
};

struct RnnOptions {
  bool reverse = false;  ///< from the last step to the first
  /// int64 [B], on the CPU or beside x: sequence b has lengths[b] steps. From there on its output
  /// is 0 and its state stays as it is; reversed it starts there. Those in host memory are checked
  /// to lie in [0, T]; others count as 0 or T where they do not.
  Tensor lengths = {};
};

struct RnnResult {
  Tensor output;  ///< [T, B, H]: h of every step
  /// [B, H]: after the last step (reverse: the first; with lengths: each sequence's own)
  Tensor h_n;
  BRAID_FIELDS(output, h_n)
};
struct LstmResult {
  Tensor output, h_n, c_n;
  BRAID_FIELDS(output, h_n, c_n)
};

/// Long short-term memory: i, f, o = σ(W x + U h + b), g = tanh(W x + U h + b), c' = f c + i g, h'
/// = o tanh(c').
///
/// Shapes    x [T, B, I] with T >= 1, h_0 and c_0 [B, H], weights above → output [T, B, H], h_n and
///           c_n [B, H]
/// Types     floating point, one for all; float16 and bfloat16 are made float32 first, so that
///           states keep their digits from step to step, and the results are rounded once
/// Cost      one product for the inputs of all steps, then a product and one fused kernel a step;
///           backward the same, with the weights' gradients as one product each over all steps
/// Gradient  backward through time. Where the gradient is to be differentiated again (create_graph)
///           it is made of plain recorded ops, step by step, so that gradients of any order exist;
///           the forward is then run a second time
/// Throws    ShapeError, DTypeError, DeviceError; IndexError for a length outside [0, T]
/// Source    Hochreiter & Schmidhuber 1997; Gers, Schmidhuber & Cummins 2000 (forget gate)
[[nodiscard]] LstmResult lstm(const Tensor& x, const Tensor& h_0, const Tensor& c_0,
                              const RnnWeights& weights, const RnnOptions& options = {});

/// Gated recurrent unit: r, z = σ(W x + b_ih + U h + b_hh), n = tanh(W x + b_ih + r (U h + b_hh)),
/// h' = (1 - z) n + z h.
/// As lstm, without c. Source: Cho et al. 2014, arXiv:1406.1078, with the reset gate after the
/// hidden product, as PyTorch and cuDNN have it.
[[nodiscard]] RnnResult gru(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
                            const RnnOptions& options = {});

/// h' = tanh(W x + U h + b). As lstm, without c. Source: Elman 1990.
[[nodiscard]] RnnResult rnn_tanh(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
                                 const RnnOptions& options = {});
/// h' = relu(W x + U h + b). As rnn_tanh.
[[nodiscard]] RnnResult rnn_relu(const Tensor& x, const Tensor& h_0, const RnnWeights& weights,
                                 const RnnOptions& options = {});

}  // namespace braid
