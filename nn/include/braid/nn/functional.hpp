#pragma once
#include <braid/core/names.hpp>
#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/arrange.hpp>
#include <braid/core/ops/attention.hpp>
#include <braid/core/ops/composed.hpp>
#include <braid/core/ops/conv.hpp>
#include <braid/core/ops/dropout.hpp>
#include <braid/core/ops/in_place.hpp>
#include <braid/core/ops/index.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/masks.hpp>
#include <braid/core/ops/norm.hpp>
#include <braid/core/ops/pad.hpp>
#include <braid/core/ops/pool.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/core/random.hpp>
#include <braid/nn/internal/functional_options.hpp>
#include <braid/nn/losses.hpp>

/// PyTorch's functional names: the functions of braid and braid::nn. Options are those of the
/// functions (`{.padding = 1}`), or LibTorch's (`F::Conv2dFuncOptions().padding(1)`).
///
///     namespace F = nn::functional;
///     F::cross_entropy(F::linear(x, w), labels);
namespace braid::nn::functional {

// activations
using braid::celu;
using braid::celu_;
using braid::elu;
using braid::elu_;
using braid::gelu;
using braid::glu;
using braid::hardshrink;
using braid::hardsigmoid;
using braid::hardswish;
using braid::hardtanh;
using braid::hardtanh_;
using braid::leaky_relu;
using braid::leaky_relu_;
using braid::log_softmax;
using braid::logsigmoid;
using braid::mish;
using braid::prelu;
using braid::relu;
using braid::relu6;
using braid::relu_;
using braid::selu;
using braid::selu_;
using braid::sigmoid;
using braid::silu;
using braid::softmax;
using braid::softmin;
using braid::softplus;
using braid::softshrink;
using braid::softsign;
using braid::tanh;
using braid::tanhshrink;
using braid::threshold;
using braid::threshold_;
// layers
using braid::batch_norm;
using braid::conv1d;
using braid::conv2d;
using braid::conv_transpose1d;
using braid::conv_transpose2d;
using braid::dropout;
using braid::dropout1d;
using braid::dropout2d;
using braid::group_norm;
using braid::instance_norm;
using braid::layer_norm;
using braid::linear;
using braid::normalize;
using braid::one_hot;
using braid::pad;
using braid::rms_norm;
using braid::scaled_dot_product_attention;
// pooling and resizing
using braid::adaptive_avg_pool1d;
using braid::adaptive_avg_pool2d;
using braid::adaptive_max_pool2d;
using braid::avg_pool1d;
using braid::avg_pool2d;
using braid::interpolate;
using braid::max_pool1d;
using braid::max_pool1d_with_indices;
using braid::max_pool2d;
using braid::max_pool2d_with_indices;
using braid::pixel_shuffle;
using braid::pixel_unshuffle;
// distances and losses
using braid::cosine_similarity;
using braid::pairwise_distance;
using nn::binary_cross_entropy;
using nn::binary_cross_entropy_with_logits;
using nn::cosine_embedding_loss;
using nn::cross_entropy;
using nn::gaussian_nll_loss;
using nn::hinge_embedding_loss;
using nn::huber_loss;
using nn::kl_div;
using nn::l1_loss;
using nn::margin_ranking_loss;
using nn::mse_loss;
using nn::nll_loss;
using nn::poisson_nll_loss;
using nn::smooth_l1_loss;
using nn::soft_margin_loss;
using nn::triplet_margin_loss;

/// braid::embedding with the index first, as in PyTorch's F.embedding.
[[nodiscard]] Tensor embedding(const Tensor& index, const Tensor& weight,
                               std::optional<std::int64_t> padding_idx = {});
/// Samples of the classes' one-hot vectors, relaxed: softmax((logits + g) / tau) with Gumbel noise
/// g. With `hard` the result is one-hot, with the gradient of the relaxed one.
[[nodiscard]] Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false,
                                    std::int64_t dim = -1);

// ---- LibTorch's options in place of the arguments after the first tensors
[[nodiscard]] Tensor conv1d(const Tensor& x, const Tensor& w, const Conv1dFuncOptions& o);
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& w, const Conv2dFuncOptions& o);
[[nodiscard]] Tensor conv_transpose1d(const Tensor& x, const Tensor& w,
                                      const ConvTranspose1dFuncOptions& o);
[[nodiscard]] Tensor conv_transpose2d(const Tensor& x, const Tensor& w,
                                      const ConvTranspose2dFuncOptions& o);
[[nodiscard]] Tensor max_pool1d(const Tensor& x, const MaxPool1dFuncOptions& o);
[[nodiscard]] Tensor max_pool2d(const Tensor& x, const MaxPool2dFuncOptions& o);
[[nodiscard]] std::pair<Tensor, Tensor> max_pool1d_with_indices(const Tensor& x,
                                                                const MaxPool1dFuncOptions& o);
[[nodiscard]] std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x,
                                                                const MaxPool2dFuncOptions& o);
[[nodiscard]] Tensor avg_pool1d(const Tensor& x, const AvgPool1dFuncOptions& o);
[[nodiscard]] Tensor avg_pool2d(const Tensor& x, const AvgPool2dFuncOptions& o);
[[nodiscard]] Tensor pad(const Tensor& x, const PadFuncOptions& o);
[[nodiscard]] Tensor pixel_shuffle(const Tensor& x, const PixelShuffleFuncOptions& o);
[[nodiscard]] Tensor pixel_unshuffle(const Tensor& x, const PixelUnshuffleFuncOptions& o);
[[nodiscard]] Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var,
                                const BatchNormFuncOptions& o);
[[nodiscard]] Tensor group_norm(const Tensor& x, const GroupNormFuncOptions& o);
[[nodiscard]] Tensor layer_norm(const Tensor& x, const LayerNormFuncOptions& o);
[[nodiscard]] Tensor dropout(const Tensor& x, const DropoutFuncOptions& o);
[[nodiscard]] Tensor dropout2d(const Tensor& x, const DropoutFuncOptions& o);
[[nodiscard]] Tensor normalize(const Tensor& x, const NormalizeFuncOptions& o);
[[nodiscard]] Tensor cosine_similarity(const Tensor& a, const Tensor& b,
                                       const CosineSimilarityFuncOptions& o);
[[nodiscard]] Tensor softmax(const Tensor& x, const SoftmaxFuncOptions& o);
[[nodiscard]] Tensor log_softmax(const Tensor& x, const SoftmaxFuncOptions& o);
[[nodiscard]] Tensor softmin(const Tensor& x, const SoftmaxFuncOptions& o);
[[nodiscard]] Tensor gelu(const Tensor& x, const GELUFuncOptions& o);
[[nodiscard]] Tensor threshold(const Tensor& x, const ThresholdFuncOptions& o);
Tensor relu(const Tensor& x, const ReLUFuncOptions& o);
Tensor elu(const Tensor& x, const ELUFuncOptions& o);
Tensor celu(const Tensor& x, const CELUFuncOptions& o);
Tensor leaky_relu(const Tensor& x, const LeakyReLUFuncOptions& o);
Tensor hardtanh(const Tensor& x, const HardtanhFuncOptions& o);
[[nodiscard]] Tensor softplus(const Tensor& x, const SoftplusFuncOptions& o);

}  // namespace braid::nn::functional
