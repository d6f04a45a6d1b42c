#pragma once
#include <optional>

#include <braid/core/autograd.hpp>

// Mixed precision: products in 16 bits, everything that needs more digits in float32.
namespace braid {

/// While it exists, ops of its thread, and of the threads that it divides its work over, choose
/// their precision by themselves:
///
/// 16 bits   matmul and what is made of it (mm, bmm, mv, dot, tensordot, einsum), linear,
///           linear_relu, conv1d, conv2d and their transposes, scaled_dot_product_attention
/// float32   softmax, log_softmax, softplus, every loss, batch_norm, layer_norm, rms_norm,
///           group_norm, exp, expm1, exp2, the logarithms, pow, rsqrt, reciprocal, tan and the
///           other trigonometric and hyperbolic functions but sin, cos and tanh, erf and erfc, sum,
///           prod, cumsum, cumprod, norm, logsumexp, lstm, gru and the other recurrent layers
/// Others    the dtype of their arguments; where these differ, the wider one
///
/// Arguments are converted, and the gradients back, so parameters and their gradients stay float32.
/// Tensors of float64 and integers are left alone. In-place ops, and functions that a tensor is
/// given to write into, keep the dtype that they find. backward() runs without it.
/// With float16 use a GradScaler: small gradients would become 0.
///
/// Throws    DTypeError unless dtype is float16 or bfloat16
/// Source    Micikevicius et al. 2018, Mixed Precision Training; the lists are PyTorch's
///
///     const Tensor loss = [&] {
///       const Autocast guard(DType::bfloat16);
///       return cross_entropy(model(x), labels);
///     }();
///     loss.backward();
class Autocast {
 public:
  /// With `enabled` false, ops keep the dtypes of their arguments inside of another Autocast.
  explicit Autocast(DType dtype = DType::bfloat16, bool enabled = true);
  ~Autocast() { thread_state().autocast = before_; }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  std::optional<DType> before_;
};

/// The dtype of the innermost Autocast of this thread; none outside of one.
[[nodiscard]] inline std::optional<DType> autocast_dtype() noexcept {
  return thread_state().autocast;
}

}  // namespace braid
