#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

/// The options of Adam.
struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adam. With g = grad + weight_decay p (maximize negates grad): m = β1 m + (1 - β1) g; v = β2 v +
/// (1 - β2) g²; p -= lr / (1 - β1^t) m / (√v / √(1 - β2^t) + eps). t counts the updates of each
/// parameter. With amsgrad the largest v so far is used instead of v.
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    as SGD
/// Source    Kingma & Ba 2015, arXiv:1412.6980; Reddi et al. 2018 (amsgrad)
///
///     optim::Adam optimizer(parameters(model), {.lr = 3e-4});
class Adam final : public detail::WithOptions<AdamOptions> {
 public:
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  explicit Adam(const std::vector<Group>& groups);
  template <class P, class O = AdamOptions>
    requires detail::WrongArguments<P, O, AdamOptions>
  explicit Adam(const P&, const O& = {}) {
    detail::refuse_arguments<P>();
  }

  BRAID_OPTIMIZER_STATE(.m = "exp_avg", .v = "exp_avg_sq", .s = "max_exp_avg_sq")

 private:
  void update(const Batch& batch, const detail::Update& what) override;
};

/// The options of AdamW. Unlike Adam it decays weights by default.
struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adam with decoupled weight decay: p *= 1 - lr weight_decay, then Adam's step with the gradient
/// alone.
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    as SGD
/// Source    Loshchilov & Hutter 2019, arXiv:1711.05101
///
///     optim::AdamW optimizer(parameters(model), {.lr = 3e-4, .weight_decay = 0.1});
class AdamW final : public detail::WithOptions<AdamWOptions> {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<Group>& groups);
  template <class P, class O = AdamWOptions>
    requires detail::WrongArguments<P, O, AdamWOptions>
  explicit AdamW(const P&, const O& = {}) {
    detail::refuse_arguments<P>();
  }

  BRAID_OPTIMIZER_STATE(.m = "exp_avg", .v = "exp_avg_sq", .s = "max_exp_avg_sq")

 private:
  void update(const Batch& batch, const detail::Update& what) override;
};

}  // namespace braid::optim
