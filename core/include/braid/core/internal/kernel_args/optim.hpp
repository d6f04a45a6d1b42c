#pragma once
#include <cstdint>
#include <functional>

#include <braid/core/dtype.hpp>

// Arguments of the optimizers. All arithmetic is in dtype (float32 / float64), for float16 and
// bfloat16 in float32. g' is the gradient after three changes: with grad_factor (null, or one
// number of the dtype of statistics, on the device), g is multiplied by *grad_factor and rounded to
// dtype, as ScaleListArgs would; with maximize, it is negated; then weight_decay * p is added,
// unless a comment below says otherwise.
//
// `again` is set while a step is recorded: it sets what a replay must not take from the recording
// (lr, step, …). The kernel copies it, and reads these values on the device.
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
  const void* grad_factor = nullptr;
  const std::function<void(SgdArgs&)>* again = nullptr;
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
  const void* grad_factor = nullptr;
  const std::function<void(AdamArgs&)>* again = nullptr;
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
  const void* grad_factor = nullptr;
  const std::function<void(RmspropArgs&)>* again = nullptr;
};

/// v += g'²; p -= lr * g' / (sqrt(v) + eps). Duchi et al. 2011.
struct AdagradArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double lr, eps, weight_decay;
  bool maximize;
  const void* grad_factor = nullptr;
  const std::function<void(AdagradArgs&)>* again = nullptr;
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
  const void* grad_factor = nullptr;
  const std::function<void(LionArgs&)>* again = nullptr;
};

/// The norm of order `order` of all elements of p of all items: (Σ |p|^order)^(1/order), the
/// largest |p| for infinity, the number of non-zeros for 0. A NaN gives NaN. norm is one number of
/// the dtype of statistics: float64 for float64, else float32. With `factor`, another such number,
/// *factor = min(1, max_norm / (norm + 1e-6)); a NaN stays. The sum is in a fixed
/// order. Only p and n of the items are used.
struct TotalNormArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  double order;
  void* norm;
  double max_norm = 0;
  void* factor = nullptr;
};

/// p *= *factor for all items, computed in the dtype of statistics, which *factor has, and rounded
/// once. Only p and n of the items are used.
struct ScaleListArgs {
  DType dtype;
  const OptimItem* items;
  std::int64_t count;
  const void* factor;
};

}  // namespace braid
