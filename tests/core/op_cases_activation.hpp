#pragma once
// What the tests of the activation kernel share with the table of ops.
#include <functional>

#include <braid/core/internal/kernel_args/activation.hpp>

namespace braid::test {

/// How these tests call a function of the kernel: its parameters a, b, c, and the same function of
/// one number.
struct ActivationCall {
  double a = 0, b = 0, c = 0;
  std::function<double(double)> expected;
};
/// Returns the entry of kActivationCalls, or the row of kActivations with this name. Throws if
/// there is none.
[[nodiscard]] const ActivationCall& activation_call(ActivationOp op);

}  // namespace braid::test
