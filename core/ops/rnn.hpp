#pragma once
// Shared by the two gradients of a recurrent layer: the fused one (rnn.cpp) and the one made of
// recorded ops (rnn_recorded.cpp).
#include <braid/core/autograd.hpp>
#include <braid/core/kernel_args/rnn.hpp>
#include <braid/core/tensor.hpp>

namespace braid::ops {

/// A layer's inputs. b_ih and b_hh may be undefined. c_0 is undefined unless kind is lstm. lengths
/// is undefined, or contiguous and on the device of x.
struct RnnInputs {
  RnnKind kind;
  Tensor x, h_0, c_0, w_ih, w_hh, b_ih, b_hh, lengths;
  bool reverse;
  [[nodiscard]] std::int64_t steps() const { return x.shape()[0]; }
  /// Returns the time of the step at position s of the loop.
  [[nodiscard]] std::int64_t time(std::int64_t s) const { return reverse ? steps() - 1 - s : s; }
};

/// Returns the gradients of x, h_0, c_0, w_ih, w_hh, b_ih, b_hh, given those of the states
/// [T, B, H] and of the last c (each may be undefined). Consists of recorded ops: runs all steps
/// forward again, then backward.
[[nodiscard]] Grads rnn_recorded_grads(const RnnInputs& inputs, const Tensor& dstates,
                                       const Tensor& dc_n);

}  // namespace braid::ops
