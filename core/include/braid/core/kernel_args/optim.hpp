#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What the optimizers are asked for. All arithmetic is in dtype (float32 / float64), of float16 and
// bfloat16 in float32. g' is the gradient as it is used: -g with maximize, and, where weight_decay
// is not said to act otherwise, + weight_decay * p.
namespace braid {

/// One parameter of an optimizer step, dense; `m`, `v`, `s` are its state: means of gradients,
/// means (or sums) of squares, what few optimizers keep.
struct OptimItem {
  void* p;
  const void* g;
  void* m;
  void* v;
  std::int64_t n;
  void* s = nullptr;
};

/// With momentum: m = first ? g' : momentum * m + (1 - dampening) * g'; g' = nesterov ? g' +
/// momentum * m : m; p -= lr * g'.
struct SgdArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first;
};

/// m, v exponential means of g', g'²; p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps), bias_i =
/// 1 - beta_i^step. Kingma & Ba 2015, arXiv:1412.6980. Unless `coupled`, weight decay is not in g'
/// but p *= 1 - lr * weight_decay before. Loshchilov & Hutter 2019, arXiv:1711.05101. amsgrad: s =
/// max(s, v) stands in v's place. Reddi et al. 2018.
struct AdamArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;
  bool coupled, amsgrad, maximize;
};

/// v exponential mean of g'²; d = sqrt(v) + eps, centered: s exponential mean of g', d = sqrt(v -
/// s²) + eps; with momentum m = momentum * m + g' / d, p -= lr * m;
/// without p -= lr * g' / d. Tieleman & Hinton 2012; Graves 2013, arXiv:1308.0850 (centered).
struct RmspropArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, alpha, eps, weight_decay, momentum;
  bool centered, maximize;
};

/// v += g'²; p -= lr * g' / (sqrt(v) + eps). Duchi et al. 2011.
struct AdagradArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, eps, weight_decay;
  bool maximize;
};

/// p = p * (1 - lr * weight_decay) - lr * sign(beta1 * m + (1 - beta1) * g); m = beta2 * m + (1 -
/// beta2) * g (g with maximize: -g). Chen et al. 2023, arXiv:2302.06675.
struct LionArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, beta1, beta2, weight_decay;
  bool maximize;
};

}  // namespace braid
