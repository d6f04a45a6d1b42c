#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/internal/kernel_args/loop.hpp>

// Arguments of the activation kernel. It computes a function f with up to three parameters a, b, c,
// or its derivative times the incoming gradient.
namespace braid {

enum class ActivationOp : std::uint8_t {
#define BRAID_ACTIVATION(name) name,
#include <braid/core/internal/activation.def>
};

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
