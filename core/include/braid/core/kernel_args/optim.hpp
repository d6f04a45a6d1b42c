#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the optimizers. All arithmetic is in dtype (float32 / float64), for float16 and
// bfloat16 in float32. g' is the gradient after two changes: with maximize, g is negated; then
// weight_decay * p is added, unless a comment below says otherwise.
namespace braid {

/// One parameter of an optimizer step, contiguous. Its state: `m` (mean of gradients), `v` (mean or
/// sum of their squares), `s` (used by few optimizers).
struct OptimItem {
  void* p;
  const void* g;
  void* m;
  void* v;
  std::int64_t n;
  void* s = nullptr;
};

/// With momentum: m = first ? g' : momentum * m + (1 - dampening) * g', then
/// g' = nesterov ? g' + momentum * m : m; p -= lr * g'.
struct SgdArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first;
};

/// m and v are exponential means of g' and g'²;
/// p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps), where bias_i = 1 - beta_i^step. Kingma & Ba
/// 2015, arXiv:1412.6980. Unless `coupled`, weight decay is not in g'; instead
/// p *= 1 - lr * weight_decay comes first. Loshchilov & Hutter 2019, arXiv:1711.05101. amsgrad: s =
/// max(s, v) replaces v. Reddi et al. 2018.
struct AdamArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;
  bool coupled, amsgrad, maximize;
};

/// v is the exponential mean of g'²; d = sqrt(v) + eps. centered: s is the exponential mean of g'
/// and d = sqrt(v - s²) + eps. With momentum: m = momentum * m + g' / d, p -= lr * m; without:
/// p -= lr * g' / d. Tieleman & Hinton 2012; Graves 2013, arXiv:1308.0850 (centered).
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

/// p = p * (1 - lr * weight_decay) - lr * sign(beta1 * m + (1 - beta1) * g), then
/// m = beta2 * m + (1 - beta2) * g, where g is -g with maximize. Chen et al. 2023,
/// arXiv:2302.06675.
struct LionArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, beta1, beta2, weight_decay;
  bool maximize;
};

}  // namespace braid
