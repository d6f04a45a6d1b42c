#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
};

/// Adadelta. With g = grad + weight_decay p (maximize negates grad): v = ρ v + (1 - ρ) g²;
/// d = √(u + eps) / √(v + eps) g; u = ρ u + (1 - ρ) d²; p -= lr d. The update consists of ops, not
/// of one kernel: it is slower than Adam's and needs memory for the new values of p, u and v.
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    as SGD
/// Source    Zeiler 2012, arXiv:1212.5701
class Adadelta final : public detail::WithOptions<AdadeltaOptions> {
 public:
  explicit Adadelta(std::vector<Tensor> parameters, const AdadeltaOptions& options = {});
  explicit Adadelta(const std::vector<Group>& groups);
  template <class P, class O = AdadeltaOptions>
    requires detail::WrongArguments<P, O, AdadeltaOptions>
  explicit Adadelta(const P&, const O& = {}) {
    detail::refuse_arguments<P>();
  }

  BRAID_OPTIMIZER_STATE(.m = "square_avg", .v = "acc_delta")

 private:
  void compute(Values& values, std::size_t group, std::int64_t step) const override;
};

}  // namespace braid::optim
