#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  bool maximize = false;
};

/// Lion. p *= 1 - lr weight_decay; p -= lr sign(β1 m + (1 - β1) g); m = β2 m + (1 - β2) g. Every
/// element moves by lr, so choose lr 3 to 10 times smaller than for AdamW, and weight_decay larger
/// by the same factor. Not in PyTorch.
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    as SGD
/// Source    Chen et al. 2023, arXiv:2302.06675
class Lion final : public detail::WithOptions<LionOptions> {
 public:
  explicit Lion(std::vector<Tensor> parameters, const LionOptions& options = {});
  explicit Lion(const std::vector<Group>& groups);

  auto braid_fields() { return std::tie(state_[0], steps_); }
  auto braid_fields() const { return std::tie(state_[0], steps_); }
  static constexpr std::string_view braid_names() { return "exp_avg, steps"; }
  void braid_owner() const {}

 private:
  [[nodiscard]] std::int64_t batch_key(std::size_t group,
                                       std::int64_t steps) const noexcept override;
  void update(const Batch& batch, std::span<const OptimItem> items) override;
  [[nodiscard]] bool has_kernel(const KernelTable& kernels) const noexcept override;
  [[nodiscard]] bool keeps(std::size_t group, std::size_t k) const noexcept override;
};

}  // namespace braid::optim
