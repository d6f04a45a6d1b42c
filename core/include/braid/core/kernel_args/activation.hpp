#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/kernel_args/loop.hpp>

// What the kernel of the activations is asked for: a function f with up to three numbers a, b, c,
// or its derivative times what comes in.
namespace braid {

enum class ActivationOp : std::uint8_t {
  gelu,         ///< x Φ(x)
  gelu_tanh,    ///< x / (1 + e^-2u), u = √(2/π) (x + 0.044715 x³)
  silu,         ///< x / (1 + e^-x)
  softplus,     ///< log(1 + e^ax) / a, x where a x > b
  elu,          ///< x <= 0 ? a (e^cx - 1) : b x
  leaky_relu,   ///< x > 0 ? x : a x
  hardtanh,     ///< x in [a, b]; no gradient at the ends
  clamp,        ///< x in [a, b], b where a > b; the gradient passes at the ends
  hardsigmoid,  ///< (x + 3 in [0, 6]) / 6
  hardswish,    ///< x hardsigmoid(x)
  mish,         ///< x tanh(log(1 + e^x))
  logsigmoid,   ///< -log(1 + e^-x)
  softsign      ///< x / (1 + |x|)
};
inline constexpr int kActivationCount = static_cast<int>(ActivationOp::softsign) + 1;

/// dy null: out = f(x). Else out = dy f'(x), 0 where the derivative is 0 by definition, whatever dy
/// is. All of one floating `dtype`; out may be x or dy (same strides). A NaN stays one. Operands 1
/// = x, 2 = dy.
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
