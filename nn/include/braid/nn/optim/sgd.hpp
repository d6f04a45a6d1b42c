#pragma once
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

/// The options of SGD.
struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
  bool maximize = false;
};
using SGDOptions = SgdOptions;  // LibTorch's name

/// Stochastic gradient descent. With g = grad + weight_decay p (maximize negates grad): without
/// momentum, p -= lr g. With momentum: m = momentum m + (1 - dampening) g, but m = g at a
/// parameter's first gradient. Then p -= lr m; with nesterov, p -= lr (g + momentum m).
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    ArgumentError if an option is out of range, there are no parameters, one is listed
///           twice or one is not a leaf; DTypeError; LayoutError for an expanded parameter
/// Source    Sutskever et al. 2013 (momentum and Nesterov's variant), in PyTorch's form
///
///     optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
///     optimizer.zero_grad();
///     cross_entropy(model(x), labels).backward();
///     optimizer.step();
class SGD final : public detail::WithOptions<SgdOptions> {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SgdOptions& options = {});
  explicit SGD(const std::vector<Group>& groups);
  template <class P, class O = SgdOptions>
    requires detail::WrongArguments<P, O, SgdOptions>
  explicit SGD(const P&, const O& = {}) {
    detail::refuse_arguments<P>();
  }

  BRAID_OPTIMIZER_STATE(.m = "momentum")

 private:
  void update(const Batch& batch, const detail::Update& what) override;
};

}  // namespace braid::optim
