#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of one step of a recurrent layer: what is computed from the gates after the matrix
// products.
namespace braid {

enum class RnnKind : std::uint8_t { tanh, relu, lstm, gru };
/// Number of gates of a kind; in PyTorch's order of weights: lstm i, f, g, o; gru r, z, n.
[[nodiscard]] constexpr std::int64_t gates_of(RnnKind kind) noexcept {
  return kind == RnnKind::lstm ? 4 : kind == RnnKind::gru ? 3 : 1;
}

/// One step for a batch, in float32 or float64. All tensors are contiguous: states [batch, hidden],
/// gates [batch, gates_of(kind) * hidden].
///   tanh, relu  h = f(gates)
///   lstm        i, f, o = σ(gates), g = tanh(gates); c = f c_before + i g; h = o tanh(c)
///   gru         r, z = σ(gates + hidden_gates), n = tanh(gates + r hidden_gates);
///               h = n + z (h_before - n)
/// gates holds W x + U h_before + b; for gru it holds W x + b, and hidden_gates holds
/// U h_before + b. The activations of lstm and gru are written over `gates`. Rows with lengths[row]
/// <= step (lengths may be null) are past their end: h = h_before, c = c_before, and their gates
/// stay unchanged.
struct RnnCellArgs {
  RnnKind kind;
  DType dtype;
  std::int64_t batch, hidden;
  void* gates;
  const void* hidden_gates;  // gru
  const void* h_before;
  void* h;
  const void* c_before;  // lstm
  void* c;               // lstm
  const std::int64_t* lengths;
  std::int64_t step;
};

/// The gradients of one step. `dh` holds the gradient of h from the following step; dy (may be
/// null) is added to it.
/// dgates is set to the gradient of what `gates` held before the step; for gru also dhidden_gates,
/// whose parts r and z are the same.
/// dh becomes the gradient of h_before without the part that goes through the gates: dh z for gru,
/// else 0. The caller adds the missing part as a product. For lstm, dc, the gradient of c, becomes
/// that of c_before. Rows past their end: dgates is 0, and dh + dy and dc are passed on unchanged.
struct RnnCellBackwardArgs {
  RnnKind kind;
  DType dtype;
  std::int64_t batch, hidden;
  const void* gates;         // lstm, gru: the activations
  const void* hidden_gates;  // gru
  const void* h_before;      // gru
  const void* h;             // tanh, relu
  const void* c_before;      // lstm
  const void* c;             // lstm
  const void* dy;
  void* dh;
  void* dc;  // lstm
  void* dgates;
  void* dhidden_gates;  // gru
  const std::int64_t* lengths;
  std::int64_t step;
};

}  // namespace braid
