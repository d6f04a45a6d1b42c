#include <utility>

#include <braid/nn/loss_layers.hpp>

namespace braid::nn {
namespace {

/// Moves a tensor out of the options into a buffer.
Buffer taken(Tensor& weight) { return Buffer(std::exchange(weight, Tensor())); }

template <class Options> Options with_weight(Options options, const Tensor& weight) {
  options.weight = weight;
  return options;
}
BceWithLogitsOptions with_weights(const BCEWithLogitsLoss& loss) {
  BceWithLogitsOptions options = with_weight(loss.options, loss.weight);
  options.pos_weight = loss.pos_weight;
  return options;
}

// mse_loss, l1_loss and soft_margin_loss take a reduction alone, which LossSum does not have.
template <class F, class... T> LossSum summed(F f, Reduction, const T&... tensors) {
  return f(sum_and_count, tensors...);
}
template <class F, class Options, class... T>
LossSum summed(F f, const Options& options, const T&... tensors) {
  return f(sum_and_count, tensors..., options);
}

}  // namespace

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyOptions& o)
    : options(o), weight(taken(options.weight)) {}
Tensor CrossEntropyLoss::operator()(const Tensor& logits, const Tensor& target) const {
  return cross_entropy(logits, target, with_weight(options, weight));
}
LossSum CrossEntropyLoss::operator()(SumAndCount tag, const Tensor& logits,
                                     const Tensor& target) const {
  return cross_entropy(tag, logits, target, with_weight(options, weight));
}

NLLLoss::NLLLoss(const NllOptions& o) : options(o), weight(taken(options.weight)) {}
Tensor NLLLoss::operator()(const Tensor& log_probabilities, const Tensor& labels) const {
  return nll_loss(log_probabilities, labels, with_weight(options, weight));
}
LossSum NLLLoss::operator()(SumAndCount tag, const Tensor& log_probabilities,
                            const Tensor& labels) const {
  return nll_loss(tag, log_probabilities, labels, with_weight(options, weight));
}

BCELoss::BCELoss(const BceOptions& o) : options(o), weight(taken(options.weight)) {}
Tensor BCELoss::operator()(const Tensor& p, const Tensor& target) const {
  return binary_cross_entropy(p, target, with_weight(options, weight));
}
LossSum BCELoss::operator()(SumAndCount tag, const Tensor& p, const Tensor& target) const {
  return binary_cross_entropy(tag, p, target, with_weight(options, weight));
}

BCEWithLogitsLoss::BCEWithLogitsLoss(const BceWithLogitsOptions& o)
    : options(o), weight(taken(options.weight)), pos_weight(taken(options.pos_weight)) {}
Tensor BCEWithLogitsLoss::operator()(const Tensor& x, const Tensor& target) const {
  return binary_cross_entropy_with_logits(x, target, with_weights(*this));
}
LossSum BCEWithLogitsLoss::operator()(SumAndCount tag, const Tensor& x,
                                      const Tensor& target) const {
  return binary_cross_entropy_with_logits(tag, x, target, with_weights(*this));
}

GaussianNLLLoss::GaussianNLLLoss(const GaussianNllOptions& o) : options(o) {}
Tensor GaussianNLLLoss::operator()(const Tensor& x, const Tensor& target,
                                   const Tensor& variance) const {
  return gaussian_nll_loss(x, target, variance, options);
}
LossSum GaussianNLLLoss::operator()(SumAndCount tag, const Tensor& x, const Tensor& target,
                                    const Tensor& variance) const {
  return gaussian_nll_loss(tag, x, target, variance, options);
}

#define BRAID_LOSS(Layer, function, Options)                                           \
  Layer::Layer(const Options& o) : options(o) {}                                       \
  Tensor Layer::operator()(const Tensor& a, const Tensor& b) const {                   \
    return function(a, b, options);                                                    \
  }                                                                                    \
  LossSum Layer::operator()(SumAndCount, const Tensor& a, const Tensor& b) const {     \
    return summed([](const auto&... all) { return function(all...); }, options, a, b); \
  }
BRAID_LOSS_LAYERS_OF_TWO(BRAID_LOSS)
#undef BRAID_LOSS
#define BRAID_LOSS(Layer, function, Options)                                                \
  Layer::Layer(const Options& o) : options(o) {}                                            \
  Tensor Layer::operator()(const Tensor& a, const Tensor& b, const Tensor& c) const {       \
    return function(a, b, c, options);                                                      \
  }                                                                                         \
  LossSum Layer::operator()(SumAndCount, const Tensor& a, const Tensor& b, const Tensor& c) \
      const {                                                                               \
    return summed([](const auto&... all) { return function(all...); }, options, a, b, c);   \
  }
BRAID_LOSS_LAYERS_OF_THREE(BRAID_LOSS)
#undef BRAID_LOSS

}  // namespace braid::nn
