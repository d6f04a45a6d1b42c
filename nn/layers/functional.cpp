// The functions of nn::functional that are more than another name.
#include <braid/nn/functional.hpp>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/gather.hpp>
#include <braid/core/ops/reduce.hpp>

namespace braid::nn::functional {

#define BRAID_POOL(Result, name, Options) \
  Result name(const Tensor& x, const Options& options) { return name(x, options.kernel, options); }
BRAID_POOL(Tensor, max_pool1d, MaxPool1dFuncOptions)
BRAID_POOL(Tensor, max_pool2d, MaxPool2dFuncOptions)
using Pair = std::pair<Tensor, Tensor>;
BRAID_POOL(Pair, max_pool1d_with_indices, MaxPool1dFuncOptions)
BRAID_POOL(Pair, max_pool2d_with_indices, MaxPool2dFuncOptions)
BRAID_POOL(Tensor, avg_pool1d, AvgPool1dFuncOptions)
BRAID_POOL(Tensor, avg_pool2d, AvgPool2dFuncOptions)
#undef BRAID_POOL
Tensor embedding(const Tensor& index, const Tensor& weight,
                 std::optional<std::int64_t> padding_idx) {
  return braid::embedding(weight, index, padding_idx);
}
Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, std::int64_t dim) {
  const Tensor exponential = empty_like(logits).exponential_();
  const Tensor y = softmax((logits - log(exponential)) / tau, dim);
  if (!hard) return y;
  const Tensor one = scatter(zeros_like(y), dim, argmax(y, dim, true), 1);
  return one - y.detach() + y;
}
Tensor conv1d(const Tensor& x, const Tensor& w, const Conv1dFuncOptions& o) {
  return conv1d(x, w, o.bias_, o);
}
Tensor conv2d(const Tensor& x, const Tensor& w, const Conv2dFuncOptions& o) {
  return conv2d(x, w, o.bias_, o);
}
Tensor conv_transpose1d(const Tensor& x, const Tensor& w, const ConvTranspose1dFuncOptions& o) {
  return conv_transpose1d(x, w, o.bias_, o);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& w, const ConvTranspose2dFuncOptions& o) {
  return conv_transpose2d(x, w, o.bias_, o);
}
Tensor pixel_shuffle(const Tensor& x, const PixelShuffleFuncOptions& o) {
  return pixel_shuffle(x, o.upscale_factor);
}
Tensor pixel_unshuffle(const Tensor& x, const PixelUnshuffleFuncOptions& o) {
  return pixel_unshuffle(x, o.downscale_factor);
}
Tensor pad(const Tensor& x, const PadFuncOptions& o) { return pad(x, o.sizes, o.mode_, o.value_); }
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var,
                  const BatchNormFuncOptions& o) {
  return batch_norm(x, mean, var, o.weight_, o.bias_, o.training_, o.momentum_, o.eps_);
}
Tensor group_norm(const Tensor& x, const GroupNormFuncOptions& o) {
  return group_norm(x, o.num_groups, o.weight_, o.bias_, o.eps_);
}
Tensor layer_norm(const Tensor& x, const LayerNormFuncOptions& o) {
  return layer_norm(x, o.normalized_shape, o.weight_, o.bias_, o.eps_);
}
Tensor dropout(const Tensor& x, const DropoutFuncOptions& o) {
  return dropout(x, o.p_, o.training_);
}
Tensor dropout2d(const Tensor& x, const DropoutFuncOptions& o) {
  return dropout2d(x, o.p_, o.training_);
}
Tensor normalize(const Tensor& x, const NormalizeFuncOptions& o) {
  return normalize(x, o.p_, o.dim_, o.eps_);
}
Tensor cosine_similarity(const Tensor& a, const Tensor& b, const CosineSimilarityFuncOptions& o) {
  return cosine_similarity(a, b, o.dim_, o.eps_);
}
Tensor softmax(const Tensor& x, const SoftmaxFuncOptions& o) { return softmax(x, o.dim); }
Tensor log_softmax(const Tensor& x, const SoftmaxFuncOptions& o) { return log_softmax(x, o.dim); }
Tensor softmin(const Tensor& x, const SoftmaxFuncOptions& o) { return softmin(x, o.dim); }
Tensor gelu(const Tensor& x, const GELUFuncOptions& o) { return gelu(x, o.approximate_); }
Tensor threshold(const Tensor& x, const ThresholdFuncOptions& o) {
  return threshold(x, o.threshold, o.value);
}
Tensor relu(const Tensor& x, const ReLUFuncOptions& o) { return o.inplace_ ? x.relu_() : relu(x); }
Tensor elu(const Tensor& x, const ELUFuncOptions& o) {
  return o.inplace_ ? x.elu_(o.alpha_) : elu(x, o.alpha_);
}
Tensor celu(const Tensor& x, const CELUFuncOptions& o) {
  return o.inplace_ ? x.celu_(o.alpha_) : celu(x, o.alpha_);
}
Tensor leaky_relu(const Tensor& x, const LeakyReLUFuncOptions& o) {
  return o.inplace_ ? x.leaky_relu_(o.negative_slope_) : leaky_relu(x, o.negative_slope_);
}
Tensor hardtanh(const Tensor& x, const HardtanhFuncOptions& o) {
  return o.inplace_ ? x.hardtanh_(o.min_val_, o.max_val_) : hardtanh(x, o.min_val_, o.max_val_);
}
Tensor softplus(const Tensor& x, const SoftplusFuncOptions& o) {
  return softplus(x, o.beta_, o.threshold_);
}

}  // namespace braid::nn::functional
