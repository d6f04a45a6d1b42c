#pragma once
// The derivative of an activation in the epilogue of the product before it. The gradient of
// `h = gelu(z); y = linear(h, w)` is dz = (dy w) gelu'(z). If nobody else needs dh = dy w, the
// product's kernel multiplies its result by gelu'(z): dh is not written to memory, and the
// activation's node passes dz on. The bits are those of two ops.
#include <cstdint>

#include <braid/core/internal/kernel_args/gemm.hpp>
#include <braid/core/tensor.hpp>

namespace braid::autograd {

/// dx = dy f'(saved), as an epilogue of the product that computes dy. `saved` is f's input, or its
/// output for relu.
struct Derivative {
  Epilogue epilogue = Epilogue::none;
  Tensor saved;
};

/// For use inside the backward of a node. Returns true if the gradient of its input i goes only to
/// a node that begins with a derivative, which has one output, so that this node may apply it.
[[nodiscard]] bool derivative_of_input(std::uint32_t i, Derivative& to);
/// Tells the engine that the gradient of input i, which this backward returns, includes the
/// derivative.
void derivative_was_applied(std::uint32_t i) noexcept;
/// For use inside the backward of a node with a derivative. True if the gradient that it got
/// includes it.
[[nodiscard]] bool has_derivative() noexcept;

}  // namespace braid::autograd
