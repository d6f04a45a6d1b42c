#pragma once
#include <braid/nn/losses.hpp>
#include <braid/nn/module.hpp>

// The losses as modules, with PyTorch's names. Each is the function that it calls (losses.hpp), and
// has its options: `nn::HuberLoss{{.delta = 0.5}}`. With sum_and_count as first argument it returns
// a LossSum. A weight is a buffer: it moves with the module, and is saved.
namespace braid::nn {

/// cross_entropy as a module.
///
///     const nn::CrossEntropyLoss criterion({.label_smoothing = 0.1});
///     criterion(logits, labels).backward();
struct CrossEntropyLoss : Module {
  CrossEntropyOptions options;  ///< without the weight
  Buffer weight;
  explicit CrossEntropyLoss(const CrossEntropyOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& logits, const Tensor& target))
  BRAID_FORWARD_SUM(LossSum, (SumAndCount tag, const Tensor& logits, const Tensor& target))
  BRAID_FIELDS_DECLARED(weight)
};

/// nll_loss as a module.
struct NLLLoss : Module {
  NllOptions options;  ///< without the weight
  Buffer weight;
  explicit NLLLoss(const NllOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& log_probabilities, const Tensor& labels))
  BRAID_FORWARD_SUM(LossSum,
                    (SumAndCount tag, const Tensor& log_probabilities, const Tensor& labels))
  BRAID_FIELDS_DECLARED(weight)
};

/// binary_cross_entropy as a module.
struct BCELoss : Module {
  BceOptions options;  ///< without the weight
  Buffer weight;
  explicit BCELoss(const BceOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& p, const Tensor& target))
  BRAID_FORWARD_SUM(LossSum, (SumAndCount tag, const Tensor& p, const Tensor& target))
  BRAID_FIELDS_DECLARED(weight)
};

/// binary_cross_entropy_with_logits as a module.
struct BCEWithLogitsLoss : Module {
  BceWithLogitsOptions options;  ///< without the weights
  Buffer weight, pos_weight;
  explicit BCEWithLogitsLoss(const BceWithLogitsOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x, const Tensor& target))
  BRAID_FORWARD_SUM(LossSum, (SumAndCount tag, const Tensor& x, const Tensor& target))
  BRAID_FIELDS_DECLARED(weight, pos_weight)
};

/// gaussian_nll_loss as a module.
struct GaussianNLLLoss : Module {
  GaussianNllOptions options;
  explicit GaussianNLLLoss(const GaussianNllOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x, const Tensor& target, const Tensor& variance))
  BRAID_FORWARD_SUM(LossSum, (SumAndCount tag, const Tensor& x, const Tensor& target,
                              const Tensor& variance))
  BRAID_FIELDS()
};

// The losses without tensors in their options, X(Layer, function, Options): of two tensors, and of
// three. The structs, their calls and their tests are made from these lists.
#define BRAID_LOSS_LAYERS_OF_TWO(X)                                  \
  X(L1Loss, l1_loss, Reduction)                                      \
  X(MSELoss, mse_loss, Reduction)                                    \
  X(SmoothL1Loss, smooth_l1_loss, SmoothL1Options)                   \
  X(HuberLoss, huber_loss, HuberOptions)                             \
  X(KLDivLoss, kl_div, KlDivOptions)                                 \
  X(PoissonNLLLoss, poisson_nll_loss, PoissonNllOptions)             \
  X(SoftMarginLoss, soft_margin_loss, Reduction)                     \
  X(HingeEmbeddingLoss, hinge_embedding_loss, HingeEmbeddingOptions) \
  X(CapsuleMarginLoss, capsule_margin_loss, CapsuleMarginOptions)
#define BRAID_LOSS_LAYERS_OF_THREE(X)                                   \
  X(CosineEmbeddingLoss, cosine_embedding_loss, CosineEmbeddingOptions) \
  X(MarginRankingLoss, margin_ranking_loss, MarginRankingOptions)       \
  X(TripletMarginLoss, triplet_margin_loss, TripletMarginOptions)

#define BRAID_LOSS(Layer, function, Options)                                        \
  struct Layer : Module {                                                           \
    Options options;                                                                \
    explicit Layer(const Options& options = {});                                    \
    BRAID_FORWARD(Tensor, (const Tensor& a, const Tensor& b))                       \
    BRAID_FORWARD_SUM(LossSum, (SumAndCount tag, const Tensor& a, const Tensor& b)) \
    BRAID_FIELDS()                                                                  \
  };
BRAID_LOSS_LAYERS_OF_TWO(BRAID_LOSS)
#undef BRAID_LOSS
#define BRAID_LOSS(Layer, function, Options)                                                \
  struct Layer : Module {                                                                   \
    Options options;                                                                        \
    explicit Layer(const Options& options = {});                                            \
    BRAID_FORWARD(Tensor, (const Tensor& a, const Tensor& b, const Tensor& c))              \
    BRAID_FORWARD_SUM(LossSum,                                                              \
                      (SumAndCount tag, const Tensor& a, const Tensor& b, const Tensor& c)) \
    BRAID_FIELDS()                                                                          \
  };
BRAID_LOSS_LAYERS_OF_THREE(BRAID_LOSS)
#undef BRAID_LOSS

}  // namespace braid::nn
