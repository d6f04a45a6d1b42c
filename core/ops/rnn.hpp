#pragma once
// What the two ways of a recurrent layer's gradient share: the fused one (rnn.cpp) and the one made
// of recorded ops (rnn_recorded.cpp).
#include <braid/core/autograd.hpp>
#include <braid/core/kernel_args/rnn.hpp>
#include <braid/core/tensor.hpp>

namespace braid::ops {

/// A layer's inputs. b_ih and b_hh may be undefined, c_0 is so unless kind is lstm; lengths is
/// undefined or dense beside x.
struct RnnInputs {
  RnnKind kind;
  Tensor x, h_0, c_0, w_ih, w_hh, b_ih, b_hh, lengths;
  bool reverse;
  [[nodiscard]] std::int64_t steps() const { return x.shape()[0]; }
  /// Time of the step that is taken at place s.
  [[nodiscard]] std::int64_t time(std::int64_t s) const { return reverse ? steps() - 1 - s : s; }
};

/// Gradients of x, h_0, c_0, w_ih, w_hh, b_ih, b_hh from those of the states [T, B, H] and of the
/// last c (each may be undefined), made of recorded ops: the steps once more forward, then back.
[[nodiscard]] Grads rnn_recorded_grads(const RnnInputs& inputs, const Tensor& dstates,
                                       const Tensor& dc_n);

}  // namespace braid::ops
