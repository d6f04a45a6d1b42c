#pragma once
#include <optional>

#include <braid/core/autograd.hpp>

// Mixed precision: products in 16 bits, everything that needs more digits in float32.
namespace braid {

/// While it exists, ops of its thread, and of the threads that it divides its work over, choose
/// their precision by themselves:
///
/// 16 bits   matmul and what is made of it (mm, bmm, mv, dot, tensordot, inner, addmm, addmv,
///           baddbmm, addbmm, and the products in einsum), addr, linear, linear_relu, linear_gelu,
///           linear_add (unless the residual has another dtype), conv1d, conv2d and their
///           transposes, scaled_dot_product_attention, varlen_attn
/// float32   softmax, log_softmax, softplus, every loss, batch_norm, layer_norm, rms_norm,
///           group_norm, exp, expm1, exp2, the logarithms, pow, rsqrt, reciprocal, the
///           trigonometric and hyperbolic functions of one tensor but sin, cos and tanh, erf and
///           erfc, sum, prod, cumsum, cumprod, norm, logsumexp, lstm, gru and the other recurrent
///           layers; not where the caller names a dtype, as in softmax(x, -1, kFloat16)
/// Others    the dtype of their arguments; where these differ, the wider one, in scatter_add too
///
/// Arguments are converted, and the gradients back, so parameters and their gradients stay float32.
/// Tensors of float64 and integers are left alone. In-place ops, and functions that a tensor is
/// given to write into, keep the dtype that they find; index_put_ converts the values to it.
/// backward() runs without it.
/// With float16 use a GradScaler: small gradients would become 0.
///
/// Throws    DTypeError unless dtype is float16 or bfloat16
/// Source    Micikevicius et al. 2018, Mixed Precision Training; the lists are PyTorch's for
///           CUDA. But dot and tensordot of float32 compute in 16 bits here, einsum without a
///           matrix product keeps the dtype, and more functions are in the second list
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
