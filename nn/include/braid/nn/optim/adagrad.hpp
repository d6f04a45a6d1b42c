#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

/// The options of Adagrad.
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
///
///     optim::Adagrad optimizer(parameters(model), {.lr = 0.05});
class Adagrad final : public detail::WithOptions<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options = {});
  explicit Adagrad(const std::vector<Group>& groups);
  template <class P, class O = AdagradOptions>
    requires detail::WrongArguments<P, O, AdagradOptions>
  explicit Adagrad(const P&, const O& = {}) {
    detail::refuse_arguments<P>();
  }

  BRAID_OPTIMIZER_STATE(.v = "sum")

 private:
  void update(const Batch& batch, const detail::Update& what) override;
};

}  // namespace braid::optim
