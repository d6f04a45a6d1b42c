#pragma once
#include <braid/core/ops/loss.hpp>
#include <braid/core/tensor.hpp>

// Loss functions. Each has a sum form X_sum, which returns the sum and the count of the loss's
// terms (LossSum), ignoring `reduction`: for batches that are computed in parts of different sizes.
//
// Shapes    the operands have one shape, unless stated otherwise (PyTorch broadcasts some of them,
//           with a warning) → scalar; with Reduction::none one number for each term
// Types     floating point, one dtype
// Gradient  to all floating point operands, by recorded ops; at a kink it equals PyTorch's, unless
//           stated otherwise
// Throws    ShapeError, DTypeError, DeviceError; ArgumentError if an option is out of range
namespace braid::nn {

using braid::cross_entropy;
using braid::cross_entropy_sum;
using braid::CrossEntropyOptions;
using braid::LossSum;
using braid::mse_loss;
using braid::mse_loss_sum;
using braid::nll_loss;
using braid::nll_loss_sum;
using braid::NllOptions;
using braid::Reduction;

// ---- distances
/// |a - b|.
[[nodiscard]] Tensor l1_loss(const Tensor& a, const Tensor& b,
                             Reduction reduction = Reduction::mean);
[[nodiscard]] LossSum l1_loss_sum(const Tensor& a, const Tensor& b);

struct SmoothL1Options {
  Reduction reduction = Reduction::mean;
  double beta = 1;
};
/// d² / (2 beta) where d = |a - b| < beta, else d - beta / 2. With beta 0 it is l1_loss. Girshick
/// 2015, arXiv:1504.08083.
[[nodiscard]] Tensor smooth_l1_loss(const Tensor& a, const Tensor& b,
                                    const SmoothL1Options& options = {});
[[nodiscard]] LossSum smooth_l1_loss_sum(const Tensor& a, const Tensor& b,
                                         const SmoothL1Options& options = {});

struct HuberOptions {
  Reduction reduction = Reduction::mean;
  double delta = 1;
};
/// d² / 2 where d = |a - b| < delta, else delta (d - delta / 2). Huber 1964.
[[nodiscard]] Tensor huber_loss(const Tensor& a, const Tensor& b, const HuberOptions& options = {});
[[nodiscard]] LossSum huber_loss_sum(const Tensor& a, const Tensor& b,
                                     const HuberOptions& options = {});

// ---- probabilities
struct BceOptions {
  Reduction reduction = Reduction::mean;
  Tensor weight = {};  ///< broadcasts to the operands; the weight of each term
};
/// -(t log p + (1 - t) log(1 - p)). The logarithms are clamped at -100 from below. A p outside [0,
/// 1] gives NaN (PyTorch throws).
[[nodiscard]] Tensor binary_cross_entropy(const Tensor& p, const Tensor& target,
                                          const BceOptions& options = {});
[[nodiscard]] LossSum binary_cross_entropy_sum(const Tensor& p, const Tensor& target,
                                               const BceOptions& options = {});

struct BceWithLogitsOptions {
  Reduction reduction = Reduction::mean;
  Tensor weight = {};      ///< broadcasts to the operands
  Tensor pos_weight = {};  ///< broadcasts to the operands; the weight of positive targets
};
/// Binary cross entropy of sigmoid(x), computed without overflow: (1 - t) x + (1 + (pos_weight - 1)
/// t) log(1 + exp(-x)).
[[nodiscard]] Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                                      const BceWithLogitsOptions& options = {});
[[nodiscard]] LossSum binary_cross_entropy_with_logits_sum(
    const Tensor& x, const Tensor& target, const BceWithLogitsOptions& options = {});

struct KlDivOptions {
  Reduction reduction = Reduction::mean;
  /// The sum divided by the size of dim 0, which is the divergence itself (PyTorch's "batchmean").
  /// Replaces `reduction`.
  bool batch_mean = false;
  bool log_target = false;  ///< the target is given as a logarithm
};
/// target (log target - x), where x is the logarithm of a probability; 0 where the target is 0.
/// Kullback & Leibler 1951.
[[nodiscard]] Tensor kl_div(const Tensor& x, const Tensor& target,
                            const KlDivOptions& options = {});
[[nodiscard]] LossSum kl_div_sum(const Tensor& x, const Tensor& target,
                                 const KlDivOptions& options = {});

struct PoissonNllOptions {
  Reduction reduction = Reduction::mean;
  bool log_input = true;  ///< x is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of log(target!) where target > 1
  double eps = 1e-8;
};
/// exp(x) - target x; without log_input, x - target log(x + eps).
[[nodiscard]] Tensor poisson_nll_loss(const Tensor& x, const Tensor& target,
                                      const PoissonNllOptions& options = {});
[[nodiscard]] LossSum poisson_nll_loss_sum(const Tensor& x, const Tensor& target,
                                           const PoissonNllOptions& options = {});

struct GaussianNllOptions {
  Reduction reduction = Reduction::mean;
  bool full = false;  ///< adds log(2π) / 2
  double eps = 1e-6;  ///< smaller variances count as eps
};
/// (log v + (x - target)² / v) / 2, where v is the variance, of x's shape or with 1 as its last
/// size. Nix & Weigend 1994. A variance below eps gets no gradient. Throws ArgumentError if a
/// variance is negative; the host waits for the device to check that.
[[nodiscard]] Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target,
                                       const Tensor& variance,
                                       const GaussianNllOptions& options = {});
[[nodiscard]] LossSum gaussian_nll_loss_sum(const Tensor& x, const Tensor& target,
                                            const Tensor& variance,
                                            const GaussianNllOptions& options = {});

// ---- margins; targets are 1 or -1
/// log(1 + exp(-target x)).
[[nodiscard]] Tensor soft_margin_loss(const Tensor& x, const Tensor& target,
                                      Reduction reduction = Reduction::mean);
[[nodiscard]] LossSum soft_margin_loss_sum(const Tensor& x, const Tensor& target);

struct HingeEmbeddingOptions {
  Reduction reduction = Reduction::mean;
  double margin = 1;
};
/// x where target is 1, max(0, margin - x) where it is -1.
[[nodiscard]] Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target,
                                          const HingeEmbeddingOptions& options = {});
[[nodiscard]] LossSum hinge_embedding_loss_sum(const Tensor& x, const Tensor& target,
                                               const HingeEmbeddingOptions& options = {});

struct CosineEmbeddingOptions {
  Reduction reduction = Reduction::mean;
  double margin = 0;
};
/// 1 - cos(a, b) where target is 1, max(0, cos(a, b) - margin) where it is -1. Shapes: a and b [n,
/// d] and target [n], or a and b [d] and a scalar target.
[[nodiscard]] Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                           const CosineEmbeddingOptions& options = {});
[[nodiscard]] LossSum cosine_embedding_loss_sum(const Tensor& a, const Tensor& b,
                                                const Tensor& target,
                                                const CosineEmbeddingOptions& options = {});

struct MarginRankingOptions {
  Reduction reduction = Reduction::mean;
  double margin = 0;
};
/// max(0, margin - target (a - b)).
[[nodiscard]] Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                         const MarginRankingOptions& options = {});
[[nodiscard]] LossSum margin_ranking_loss_sum(const Tensor& a, const Tensor& b,
                                              const Tensor& target,
                                              const MarginRankingOptions& options = {});

struct TripletMarginOptions {
  Reduction reduction = Reduction::mean;
  double margin = 1;
  double eps = 1e-6;  ///< added to each difference
  bool swap = false;  ///< uses |positive - negative| instead where it is smaller
};
/// max(0, |anchor - positive| - |anchor - negative| + margin), with Euclidean lengths over the last
/// dim: [n, d] → n terms. With swap, |positive - negative| replaces |anchor - negative| where it is
/// smaller. Balntas et al. 2016 (swap). Throws ArgumentError unless margin > 0 and eps >= 0.
[[nodiscard]] Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative,
                                         const TripletMarginOptions& options = {});
[[nodiscard]] LossSum triplet_margin_loss_sum(const Tensor& anchor, const Tensor& positive,
                                              const Tensor& negative,
                                              const TripletMarginOptions& options = {});

struct CapsuleMarginOptions {
  Reduction reduction = Reduction::mean;
  double present = 0.9;  ///< the least length of the capsule of a class that is present
  double absent = 0.1;   ///< the greatest length of the capsule of an absent class
  double lambda = 0.5;   ///< the weight of the terms of absent classes
};
/// Σ_k T_k max(0, present - ‖v_k‖)² + lambda (1 - T_k) max(0, ‖v_k‖ - absent)², one term for each
/// row. T_k is 1 if class k is present, else 0. Not in PyTorch.
///
/// Shapes    lengths [n, classes] of the capsules; labels [n] int64, or T itself, with the shape
///           and dtype of lengths, if several classes may be present. For a label outside [0,
///           classes) no class is present
/// Source    Sabour, Frosst & Hinton 2017, arXiv:1710.09829
[[nodiscard]] Tensor capsule_margin_loss(const Tensor& lengths, const Tensor& labels,
                                         const CapsuleMarginOptions& options = {});
[[nodiscard]] LossSum capsule_margin_loss_sum(const Tensor& lengths, const Tensor& labels,
                                              const CapsuleMarginOptions& options = {});

}  // namespace braid::nn

// All losses are in both namespaces, as those of core are.
namespace braid {

using nn::BceOptions;
using nn::BceWithLogitsOptions;
using nn::binary_cross_entropy;
using nn::binary_cross_entropy_sum;
using nn::binary_cross_entropy_with_logits;
using nn::binary_cross_entropy_with_logits_sum;
using nn::capsule_margin_loss;
using nn::capsule_margin_loss_sum;
using nn::CapsuleMarginOptions;
using nn::cosine_embedding_loss;
using nn::cosine_embedding_loss_sum;
using nn::CosineEmbeddingOptions;
using nn::gaussian_nll_loss;
using nn::gaussian_nll_loss_sum;
using nn::GaussianNllOptions;
using nn::hinge_embedding_loss;
using nn::hinge_embedding_loss_sum;
using nn::HingeEmbeddingOptions;
using nn::huber_loss;
using nn::huber_loss_sum;
using nn::HuberOptions;
using nn::kl_div;
using nn::kl_div_sum;
using nn::KlDivOptions;
using nn::l1_loss;
using nn::l1_loss_sum;
using nn::margin_ranking_loss;
using nn::margin_ranking_loss_sum;
using nn::MarginRankingOptions;
using nn::poisson_nll_loss;
using nn::poisson_nll_loss_sum;
using nn::PoissonNllOptions;
using nn::smooth_l1_loss;
using nn::smooth_l1_loss_sum;
using nn::SmoothL1Options;
using nn::soft_margin_loss;
using nn::soft_margin_loss_sum;
using nn::triplet_margin_loss;
using nn::triplet_margin_loss_sum;
using nn::TripletMarginOptions;

}  // namespace braid
