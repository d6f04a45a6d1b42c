#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What the steps of recurrent layers are asked for: what is done to the gates once the products are
// there.
namespace braid {

enum class RnnKind : std::uint8_t { tanh, relu, lstm, gru };
/// Gates of a kind, in the order of PyTorch's weights: lstm i, f, g, o; gru r, z, n.
[[nodiscard]] constexpr std::int64_t gates_of(RnnKind kind) noexcept {
  return kind == RnnKind::lstm ? 4 : kind == RnnKind::gru ? 3 : 1;
}

/// One step for a batch; float32 or float64, all tensors dense: states [batch, hidden], gates
/// [batch, gates_of(kind) * hidden].
///   tanh, relu  h = f(gates) lstm        i, f, o = σ(gates), g = tanh(gates); c = f c_before + i
///   g; h = o tanh(c) gru         r, z = σ(gates + hidden_gates), n = tanh(gates + r hidden_gates);
///   h = n + z (h_before - n)
/// gates hold W x + U h_before + b; of a gru W x + b alone, and hidden_gates U h_before + b. The
/// activations of lstm and gru are written over `gates`. Rows with lengths[row] <= step (lengths
/// may be null) are past their end: h = h_before, c = c_before, their gates stay as they are.
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

/// The step's gradients. `dh` holds the gradient of h from the step after; dy (may be null) is
/// added to it.
/// dgates: set to the gradient of what `gates` held before the step; gru: dhidden_gates too, whose
/// r and z are the same.
/// dh becomes the gradient of h_before but for the part that goes through the gates, which the
/// caller adds as a product: gru dh z, else 0. lstm: dc, of c, becomes that of c_before. Rows past
/// their end: dgates 0, dh + dy and dc go on as they are.
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
