#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>

// Gradient clipping, to be called between backward and step. Parameters without a gradient are
// skipped. The overloads for vectors are not inline: a span made from a vector costs each source
// file compile time.
namespace braid::optim {

/// Returns the p-norm of all elements of all tensors as one number. norm_type may be any p > 0,
/// infinity (the largest |x|) or 0 (the number of non-zero elements). The result is float32 for
/// 16-bit tensors, else it has the dtype of the first tensor; it is on the first tensor's device.
/// An empty list gives 0.
///
/// Types     floating point, else DTypeError
/// Throws    ArgumentError if norm_type is negative or NaN, or a tensor is undefined; with
///           error_if_nonfinite also if the norm is NaN or infinite (the host then waits for the
///           device)
[[nodiscard]] Tensor get_total_norm(std::span<const Tensor> tensors, double norm_type = 2,
                                    bool error_if_nonfinite = false);
[[nodiscard]] Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2,
                                    bool error_if_nonfinite = false);

/// Scales the gradients in place by min(1, max_norm / (norm + 1e-6)), as PyTorch does, so that
/// their total norm is at most max_norm. Returns the norm before scaling. Everything is checked
/// before anything is scaled. The host waits for the device only if error_if_nonfinite is set.
///
/// Throws    ArgumentError if max_norm is negative or NaN, and as get_total_norm
///
///     loss.backward();
///     optim::clip_grad_norm_(parameters(model), 1.0);
///     optimizer.step();
Tensor clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);

/// The result of clip_grad_norm: two numbers on the first gradient's device.
struct GradClip {
  Tensor norm;    ///< of all gradients
  Tensor factor;  ///< min(1, max_norm / (norm + 1e-6))
};

/// As clip_grad_norm_, but leaves the gradients as they are: the optimizer multiplies them by the
/// factor when it reads them, which saves a pass over all gradients. The parameters become, bit for
/// bit, what they become after clip_grad_norm_.
///
/// Throws    as clip_grad_norm_
///
///     loss.backward();
///     optimizer.step(optim::clip_grad_norm(parameters(model), 1.0).factor);
[[nodiscard]] GradClip clip_grad_norm(std::span<const Tensor> parameters, double max_norm,
                                      double norm_type = 2, bool error_if_nonfinite = false);
[[nodiscard]] GradClip clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm,
                                      double norm_type = 2, bool error_if_nonfinite = false);

/// Clamps every element of the gradients to [-clip_value, clip_value], in place. NaN stays NaN.
///
/// Throws    ArgumentError if clip_value is negative or NaN
void clip_grad_value_(std::span<const Tensor> parameters, double clip_value);
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace braid::optim

// PyTorch's names.
namespace braid::nn::utils {
using optim::clip_grad_norm_;
using optim::clip_grad_value_;
using optim::get_total_norm;
}  // namespace braid::nn::utils
