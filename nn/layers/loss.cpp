#include <utility>

#include <braid/nn/loss_layers.hpp>

#include "layers/call.hpp"

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
Tensor CrossEntropyLoss::forward(const Tensor& logits, const Tensor& target) const {
  return cross_entropy(logits, target, with_weight(options, weight));
}
BRAID_LAYER_CALL(Tensor, CrossEntropyLoss, (const Tensor& logits, const Tensor& target),
                 (logits, target))
LossSum CrossEntropyLoss::forward(SumAndCount tag, const Tensor& logits,
                                  const Tensor& target) const {
  return cross_entropy(tag, logits, target, with_weight(options, weight));
}
BRAID_LAYER_CALL(LossSum, CrossEntropyLoss,
                 (SumAndCount tag, const Tensor& logits, const Tensor& target),
                 (tag, logits, target))

NLLLoss::NLLLoss(const NllOptions& o) : options(o), weight(taken(options.weight)) {}
Tensor NLLLoss::forward(const Tensor& log_probabilities, const Tensor& labels) const {
  return nll_loss(log_probabilities, labels, with_weight(options, weight));
}
BRAID_LAYER_CALL(Tensor, NLLLoss, (const Tensor& log_probabilities, const Tensor& labels),
                 (log_probabilities, labels))
LossSum NLLLoss::forward(SumAndCount tag, const Tensor& log_probabilities,
                         const Tensor& labels) const {
  return nll_loss(tag, log_probabilities, labels, with_weight(options, weight));
}
BRAID_LAYER_CALL(LossSum, NLLLoss,
                 (SumAndCount tag, const Tensor& log_probabilities, const Tensor& labels),
                 (tag, log_probabilities, labels))

BCELoss::BCELoss(const BceOptions& o) : options(o), weight(taken(options.weight)) {}
Tensor BCELoss::forward(const Tensor& p, const Tensor& target) const {
  return binary_cross_entropy(p, target, with_weight(options, weight));
}
BRAID_LAYER_CALL(Tensor, BCELoss, (const Tensor& p, const Tensor& target), (p, target))
LossSum BCELoss::forward(SumAndCount tag, const Tensor& p, const Tensor& target) const {
  return binary_cross_entropy(tag, p, target, with_weight(options, weight));
}
BRAID_LAYER_CALL(LossSum, BCELoss, (SumAndCount tag, const Tensor& p, const Tensor& target),
                 (tag, p, target))

BCEWithLogitsLoss::BCEWithLogitsLoss(const BceWithLogitsOptions& o)
    : options(o), weight(taken(options.weight)), pos_weight(taken(options.pos_weight)) {}
Tensor BCEWithLogitsLoss::forward(const Tensor& x, const Tensor& target) const {
  return binary_cross_entropy_with_logits(x, target, with_weights(*this));
}
BRAID_LAYER_CALL(Tensor, BCEWithLogitsLoss, (const Tensor& x, const Tensor& target), (x, target))
LossSum BCEWithLogitsLoss::forward(SumAndCount tag, const Tensor& x, const Tensor& target) const {
  return binary_cross_entropy_with_logits(tag, x, target, with_weights(*this));
}
BRAID_LAYER_CALL(LossSum, BCEWithLogitsLoss,
                 (SumAndCount tag, const Tensor& x, const Tensor& target), (tag, x, target))

GaussianNLLLoss::GaussianNLLLoss(const GaussianNllOptions& o) : options(o) {}
Tensor GaussianNLLLoss::forward(const Tensor& x, const Tensor& target,
                                const Tensor& variance) const {
  return gaussian_nll_loss(x, target, variance, options);
}
BRAID_LAYER_CALL(Tensor, GaussianNLLLoss,
                 (const Tensor& x, const Tensor& target, const Tensor& variance),
                 (x, target, variance))
LossSum GaussianNLLLoss::forward(SumAndCount tag, const Tensor& x, const Tensor& target,
                                 const Tensor& variance) const {
  return gaussian_nll_loss(tag, x, target, variance, options);
}
BRAID_LAYER_CALL(LossSum, GaussianNLLLoss,
                 (SumAndCount tag, const Tensor& x, const Tensor& target, const Tensor& variance),
                 (tag, x, target, variance))

#define BRAID_LOSS(Class, function, Options)                                           \
  Class::Class(const Options& o) : options(o) {}                                       \
  Tensor Class::forward(const Tensor& a, const Tensor& b) const {                      \
    return function(a, b, options);                                                    \
  }                                                                                    \
  LossSum Class::forward(SumAndCount, const Tensor& a, const Tensor& b) const {        \
    return summed([](const auto&... all) { return function(all...); }, options, a, b); \
  }                                                                                    \
  BRAID_LAYER_CALL(Tensor, Class, (const Tensor& a, const Tensor& b), (a, b))          \
  BRAID_LAYER_CALL(LossSum, Class, (SumAndCount tag, const Tensor& a, const Tensor& b), (tag, a, b))
BRAID_LOSS_LAYERS_OF_TWO(BRAID_LOSS)
#undef BRAID_LOSS
#define BRAID_LOSS(Class, function, Options)                                                      \
  Class::Class(const Options& o) : options(o) {}                                                  \
  Tensor Class::forward(const Tensor& a, const Tensor& b, const Tensor& c) const {                \
    return function(a, b, c, options);                                                            \
  }                                                                                               \
  LossSum Class::forward(SumAndCount, const Tensor& a, const Tensor& b, const Tensor& c) const {  \
    return summed([](const auto&... all) { return function(all...); }, options, a, b, c);         \
  }                                                                                               \
  BRAID_LAYER_CALL(Tensor, Class, (const Tensor& a, const Tensor& b, const Tensor& c), (a, b, c)) \
  BRAID_LAYER_CALL(LossSum, Class,                                                                \
                   (SumAndCount tag, const Tensor& a, const Tensor& b, const Tensor& c),          \
                   (tag, a, b, c))
BRAID_LOSS_LAYERS_OF_THREE(BRAID_LOSS)
#undef BRAID_LOSS

BRAID_FIELDS_DEFINED(CrossEntropyLoss, weight)
BRAID_FIELDS_DEFINED(NLLLoss, weight)
BRAID_FIELDS_DEFINED(BCELoss, weight)
BRAID_FIELDS_DEFINED(BCEWithLogitsLoss, weight, pos_weight)

}  // namespace braid::nn
