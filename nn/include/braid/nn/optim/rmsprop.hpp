#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

/// The options of RMSprop.
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
///
///     optim::RMSprop optimizer(parameters(model), {.lr = 1e-3, .momentum = 0.9});
class RMSprop final : public detail::WithOptions<RMSpropOptions> {
 public:
  explicit RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options = {});
  explicit RMSprop(const std::vector<Group>& groups);
  template <class P, class O = RMSpropOptions>
    requires detail::WrongArguments<P, O, RMSpropOptions>
  explicit RMSprop(const P&, const O& = {}) {
    detail::refuse_arguments<P>();
  }

  BRAID_OPTIMIZER_STATE(.m = "momentum", .v = "square_avg", .s = "grad_avg")

 private:
  void update(const Batch& batch, const detail::Update& what) override;
};

}  // namespace braid::optim
