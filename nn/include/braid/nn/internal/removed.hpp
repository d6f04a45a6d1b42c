#pragma once
#include <braid/nn/losses.hpp>

// Names of losses that are gone. Each is a compile error that names the new one.
namespace braid::removed_names {

// T is never deduced, so that braces for the options reach the static_assert.
#define BRAID_REMOVED_SUM(loss, ...)                                                              \
  template <class T = void> LossSum loss##_sum(__VA_ARGS__) {                                     \
    static_assert(!sizeof(T*), "braid: " #loss "_sum(...) is now " #loss "(sum_and_count, ...)"); \
    return {};                                                                                    \
  }
#define BRAID_REMOVED_SUM_OF_TWO(loss, Options) \
  BRAID_REMOVED_SUM(loss, const Tensor&, const Tensor&, const Options& = {})
#define BRAID_REMOVED_SUM_OF_THREE(loss, Options) \
  BRAID_REMOVED_SUM(loss, const Tensor&, const Tensor&, const Tensor&, const Options& = {})

BRAID_REMOVED_SUM(l1_loss, const Tensor&, const Tensor&)
BRAID_REMOVED_SUM(mse_loss, const Tensor&, const Tensor&)
BRAID_REMOVED_SUM(soft_margin_loss, const Tensor&, const Tensor&)
BRAID_REMOVED_SUM_OF_TWO(cross_entropy, CrossEntropyOptions)
BRAID_REMOVED_SUM_OF_TWO(nll_loss, NllOptions)
BRAID_REMOVED_SUM_OF_TWO(smooth_l1_loss, SmoothL1Options)
BRAID_REMOVED_SUM_OF_TWO(huber_loss, HuberOptions)
BRAID_REMOVED_SUM_OF_TWO(binary_cross_entropy, BceOptions)
BRAID_REMOVED_SUM_OF_TWO(binary_cross_entropy_with_logits, BceWithLogitsOptions)
BRAID_REMOVED_SUM_OF_TWO(kl_div, KlDivOptions)
BRAID_REMOVED_SUM_OF_TWO(poisson_nll_loss, PoissonNllOptions)
BRAID_REMOVED_SUM_OF_TWO(hinge_embedding_loss, HingeEmbeddingOptions)
BRAID_REMOVED_SUM_OF_TWO(capsule_margin_loss, CapsuleMarginOptions)
BRAID_REMOVED_SUM_OF_THREE(gaussian_nll_loss, GaussianNllOptions)
BRAID_REMOVED_SUM_OF_THREE(cosine_embedding_loss, CosineEmbeddingOptions)
BRAID_REMOVED_SUM_OF_THREE(margin_ranking_loss, MarginRankingOptions)
BRAID_REMOVED_SUM_OF_THREE(triplet_margin_loss, TripletMarginOptions)

#undef BRAID_REMOVED_SUM_OF_THREE
#undef BRAID_REMOVED_SUM_OF_TWO
#undef BRAID_REMOVED_SUM

}  // namespace braid::removed_names

namespace braid { using namespace removed_names; }
namespace braid::nn { using namespace removed_names; }
