#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

struct RMSpropOptions {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
};

/// RMSprop. With g = grad + weight_decay p (maximize negates grad): v = α v + (1 - α) g²; d = √v +
/// eps. If centered: a = α a + (1 - α) g and d = √(v - a²) + eps. Without momentum, p -= lr g / d.
/// With momentum: m = momentum m + g / d; p -= lr m.
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    as SGD
/// Source    Tieleman & Hinton 2012; Graves 2013, arXiv:1308.0850 (centered)
class RMSprop final : public detail::WithOptions<RMSpropOptions> {
 public:
  explicit RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options = {});
  explicit RMSprop(const std::vector<Group>& groups);

  auto braid_fields() { return std::tie(state_[0], state_[1], state_[2], steps_); }
  auto braid_fields() const { return std::tie(state_[0], state_[1], state_[2], steps_); }
  static constexpr std::string_view braid_names() {
    return "momentum, square_avg, grad_avg, steps";
  }
  void braid_owner() const {}

 private:
  [[nodiscard]] std::int64_t batch_key(std::size_t group,
                                       std::int64_t steps) const noexcept override;
  void update(const Batch& batch, std::span<const OptimItem> items) override;
  [[nodiscard]] bool has_kernel(const KernelTable& kernels) const noexcept override;
  [[nodiscard]] bool keeps(std::size_t group, std::size_t k) const noexcept override;

  std::vector<char> with_momentum_;  // by group, as constructed
};

}  // namespace braid::optim
