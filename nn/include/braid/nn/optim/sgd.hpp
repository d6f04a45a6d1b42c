#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
  bool maximize = false;
};

/// Stochastic gradient descent. With g = grad + weight_decay p (maximize negates grad): without
/// momentum, p -= lr g. With momentum: m = momentum m + (1 - dampening) g, but m = g at a
/// parameter's first gradient. Then p -= lr m; with nesterov, p -= lr (g + momentum m).
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    ArgumentError if an option is out of range, there are no parameters, one is listed
///           twice or one is not a leaf; DTypeError; LayoutError for an expanded parameter
/// Source    Sutskever et al. 2013 (momentum and Nesterov's variant), in PyTorch's form
class SGD final : public detail::WithOptions<SgdOptions> {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SgdOptions& options = {});
  explicit SGD(const std::vector<Group>& groups);

  auto braid_fields() { return std::tie(state_[0], steps_); }
  auto braid_fields() const { return std::tie(state_[0], steps_); }
  static constexpr std::string_view braid_names() { return "momentum, steps"; }
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
