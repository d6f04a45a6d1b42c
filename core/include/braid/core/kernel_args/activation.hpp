#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/kernel_args/loop.hpp>

// Arguments of the activation kernel. It computes a function f with up to three parameters a, b, c,
// or its derivative times the incoming gradient.
namespace braid {

enum class ActivationOp : std::uint8_t {
  gelu,         ///< x Φ(x)
  gelu_tanh,    ///< x / (1 + e^-2u), u = √(2/π) (x + 0.044715 x³)
  silu,         ///< x / (1 + e^-x)
  softplus,     ///< log(1 + e^ax) / a, x where a x > b
  elu,          ///< x <= 0 ? a (e^cx - 1) : b x
  leaky_relu,   ///< x > 0 ? x : a x
  hardtanh,     ///< x clamped to [a, b]; no gradient at the bounds
  clamp,        ///< the same, b where a > b; no gradient at finite bounds
  hardsigmoid,  ///< clamp(x + 3, 0, 6) / 6
  hardswish,    ///< x hardsigmoid(x)
  mish,         ///< x tanh(log(1 + e^x))
  logsigmoid,   ///< -log(1 + e^-x)
  softsign      ///< x / (1 + |x|)
};
inline constexpr int kActivationCount = static_cast<int>(ActivationOp::softsign) + 1;

/// If dy is null, out = f(x). Else out = dy f'(x), which is 0 where the derivative is 0 by
/// definition, whatever dy is. All have one floating-point `dtype`; out may be x or dy (same
/// strides). NaN stays NaN. Operands of the loop: 1 = x, 2 = dy.
struct ActivationArgs {
  ActivationOp op;
  DType dtype;
  void* out;
  const void* x;
  const void* dy;
  double a, b, c;
  Loop loop;
};

}  // namespace braid
