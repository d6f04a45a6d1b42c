#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

struct AdagradOptions {
  double lr = 0.01;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
};

/// Adagrad. With g = grad + weight_decay p (maximize negates grad): s += g², where s starts at
/// initial_accumulator_value; p -= lr / (1 + (t - 1) lr_decay) g / (√s + eps). t counts the updates
/// of each parameter.
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    as SGD
/// Source    Duchi, Hazan & Singer 2011
class Adagrad final : public detail::WithOptions<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options = {});
  explicit Adagrad(const std::vector<Group>& groups);

  auto braid_fields() { return std::tie(state_[1], steps_); }
  auto braid_fields() const { return std::tie(state_[1], steps_); }
  static constexpr std::string_view braid_names() { return "sum, steps"; }
  void braid_owner() const {}

 private:
  [[nodiscard]] std::int64_t batch_key(std::size_t group,
                                       std::int64_t steps) const noexcept override;
  void update(const Batch& batch, std::span<const OptimItem> items) override;
  [[nodiscard]] bool has_kernel(const KernelTable& kernels) const noexcept override;
  [[nodiscard]] bool keeps(std::size_t group, std::size_t k) const noexcept override;
  [[nodiscard]] double first_state(std::size_t group, std::size_t k) const noexcept override;
};

}  // namespace braid::optim
