#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

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
class Adam final : public detail::WithOptions<AdamOptions> {
 public:
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  explicit Adam(const std::vector<Group>& groups);

  auto braid_fields() { return std::tie(state_[0], state_[1], state_[2], steps_); }
  auto braid_fields() const { return std::tie(state_[0], state_[1], state_[2], steps_); }
  static constexpr std::string_view braid_names() {
    return "exp_avg, exp_avg_sq, max_exp_avg_sq, steps";
  }
  void braid_owner() const {}

 private:
  [[nodiscard]] std::int64_t batch_key(std::size_t group,
                                       std::int64_t steps) const noexcept override;
  void update(const Batch& batch, std::span<const OptimItem> items) override;
  [[nodiscard]] bool has_kernel(const KernelTable& kernels) const noexcept override;
  [[nodiscard]] bool keeps(std::size_t group, std::size_t k) const noexcept override;
};

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
class AdamW final : public detail::WithOptions<AdamWOptions> {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<Group>& groups);

  auto braid_fields() { return std::tie(state_[0], state_[1], state_[2], steps_); }
  auto braid_fields() const { return std::tie(state_[0], state_[1], state_[2], steps_); }
  static constexpr std::string_view braid_names() {
    return "exp_avg, exp_avg_sq, max_exp_avg_sq, steps";
  }
  void braid_owner() const {}

 private:
  [[nodiscard]] std::int64_t batch_key(std::size_t group,
                                       std::int64_t steps) const noexcept override;
  void update(const Batch& batch, std::span<const OptimItem> items) override;
  [[nodiscard]] bool has_kernel(const KernelTable& kernels) const noexcept override;
  [[nodiscard]] bool keeps(std::size_t group, std::size_t k) const noexcept override;
};

}  // namespace braid::optim
