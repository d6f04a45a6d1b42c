#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

/// The options of Lion.
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
///
///     optim::Lion optimizer(parameters(model), {.lr = 3e-5, .weight_decay = 1});
class Lion final : public detail::WithOptions<LionOptions> {
 public:
  explicit Lion(std::vector<Tensor> parameters, const LionOptions& options = {});
  explicit Lion(const std::vector<Group>& groups);
  template <class P, class O = LionOptions>
    requires detail::WrongArguments<P, O, LionOptions>
  explicit Lion(const P&, const O& = {}) {
    detail::refuse_arguments<P>();
  }

  BRAID_OPTIMIZER_STATE(.m = "exp_avg")

 private:
  void update(const Batch& batch, const detail::Update& what) override;
};

}  // namespace braid::optim
