#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>

// What is done to gradients between backward and step. Parameters without a gradient are passed
// over.
namespace braid::optim {

/// The p-norm of all elements of the tensors together, as one number; norm_type may be any p > 0,
/// infinity (the largest |x|) or 0 (how many are not 0). float32 for 16-bit tensors, else the first
/// one's dtype; on the first one's device. 0 for an empty list.
///
/// Types     floating point (DTypeError); undefined tensors are an ArgumentError
/// Throws    ArgumentError for a norm_type below 0 or NaN; with error_if_nonfinite for a norm that
///           is NaN or infinite (that waits for the device)
[[nodiscard]] Tensor get_total_norm(std::span<const Tensor> tensors, double norm_type = 2,
                                    bool error_if_nonfinite = false);
[[nodiscard]] inline Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2,
                                           bool error_if_nonfinite = false) {
  return get_total_norm(std::span<const Tensor>(tensors), norm_type, error_if_nonfinite);
}

/// Scales the gradients, in place, so that their total norm is at most max_norm: by min(1, max_norm
/// / (norm + 1e-6)), as PyTorch. Returns the norm before. Nothing waits for the device unless
/// error_if_nonfinite. All is checked before anything is scaled.
///
/// Throws    ArgumentError for max_norm < 0 or NaN, and as get_total_norm
Tensor clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);
inline Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                              double norm_type = 2, bool error_if_nonfinite = false) {
  return clip_grad_norm_(std::span<const Tensor>(parameters), max_norm, norm_type,
                         error_if_nonfinite);
}

/// Brings every element of the gradients into [-clip_value, clip_value], in place; NaN stays NaN.
///
/// Throws    ArgumentError for clip_value < 0 or NaN
void clip_grad_value_(std::span<const Tensor> parameters, double clip_value);
inline void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  clip_grad_value_(std::span<const Tensor>(parameters), clip_value);
}

}  // namespace braid::optim
