#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include <braid/nn/optim/optimizer.hpp>
#include <braid/parallel/data_parallel.hpp>
#include <braid/parallel/internal/replicated_parameters.hpp>

namespace braid::parallel {

namespace detail {
/// Sums the gradients of all devices' copies on the first device and removes those of the others.
/// Returns whether one of the other devices had a gradient.
bool sum_gradients(ReplicatedParameters& replicas);
/// Gives all optimizers the rates and momenta of the first one. If a state was loaded into that one
/// since `loads` was its count, copies the state too.
void follow_first(ReplicatedParameters& replicas, const std::vector<optim::Optimizer*>& optimizers,
                  std::int64_t& loads);
/// Takes one step of every optimizer, each on its device, with the summed gradients. An exception
/// leaves all parameters unchanged, unless a device fails while it writes. Then every later step
/// throws, until the optimizers' states are loaded.
void step_together(ReplicatedParameters& replicas,
                   const std::vector<optim::Optimizer*>& optimizers);
}  // namespace detail

/// Replicates the optimizer of a DataParallel: as long as it lives, every device keeps the weights
/// and an optimizer, and takes the same step with the sum of all gradients. Training therefore
/// sends no weights. The copies stay equal to the last bit.
///
///     parallel::DataParallel model(Net{});
///     parallel::ReplicatedOptimizer optimizer(model, [](const std::vector<Tensor>& p) {
///       return optim::AdamW(p, {.lr = 1e-3});
///     });
///
/// Gradient  backward leaves the gradient of each replica in its device's copy. step(), or
///           reduce(), sums them in the module's own parameters, in the order of
///           Communicator::reduce (fixed by `local`). To clip or inspect gradients, call reduce()
///           first. Several backwards before a step accumulate.
/// Throws    ArgumentError for a model without devices, for a DeterministicDataParallel, or if the
///           model's parameters have been replaced; what the optimizers throw; Error after a step
///           that failed on one device after others had taken it, until load_state
/// State     that of main(): state_dict(optimizer.main()), and training::Checkpoint(folder, model,
///           optimizer.main()). After a load into main() the next step copies its state to the
///           other devices. The number of devices may differ from the one at saving
/// Notes     the summed gradient is not differentiable; second derivatives with respect to inputs
///           accumulate as usual
template <class O> class ReplicatedOptimizer {
 public:
  /// `make(parameters)` returns the optimizer of one device. It is called once per device, with the
  /// parameters in the order of `parameters(model)`.
  template <class M, class F>
  ReplicatedOptimizer(const DataParallel<M>& model, const F& make)
      : replicas_(model.state().replicate_parameters(tree::flatten(model.module))) {
    for (const std::vector<Tensor>& of_device : replicas_->parameters())
      optimizers_.emplace_back(new O(make(of_device)));
    for (const std::unique_ptr<O>& optimizer : optimizers_) all_.push_back(optimizer.get());
  }

  /// Removes the gradients on all devices, like `zero_grad(model)`. `main().zero_grad()` would
  /// leave those of the other devices.
  void zero_grad() noexcept {
    for (optim::Optimizer* const optimizer : all_) optimizer->zero_grad();
  }
  /// Sums all gradients into the module's own parameters.
  void reduce() { detail::sum_gradients(*replicas_); }
  /// Calls reduce(), then takes the same step on every device, with the first optimizer's learning
  /// rates and momenta.
  void step() {
    detail::follow_first(*replicas_, all_, loads_);
    detail::step_together(*replicas_, all_);
  }

  /// The optimizer of the first device, whose parameters are the module's own. Use it for schedules
  /// and to save and load the state. Its learning rates and momenta apply to all devices.
  [[nodiscard]] O& main() noexcept { return *optimizers_.front(); }
  [[nodiscard]] const O& main() const noexcept { return *optimizers_.front(); }
  /// The optimizers of all devices in device order, and the weights that each of them updates.
  [[nodiscard]] const std::vector<std::unique_ptr<O>>& all() const noexcept { return optimizers_; }
  [[nodiscard]] const std::vector<std::vector<Tensor>>& weights() const noexcept {
    return replicas_->parameters();
  }
  /// Loads a dict from state_dict(main()) into the optimizers of all devices, as load_state_dict.
  /// The number of devices may differ from the one at saving.
  LoadReport load_state(std::span<const StateDict::value_type> dict,
                        const LoadOptions& options = {}) {
    LoadReport report;
    for (std::size_t i = optimizers_.size(); i-- > 0;) {
      report = optimizers_[i]->load_state(dict, options);
      replicas_->set_inconsistent(i > 0);
    }
    loads_ = main().loads();
    return report;
  }

 private:
  std::shared_ptr<detail::ReplicatedParameters> replicas_;
  std::vector<std::unique_ptr<O>> optimizers_;
  std::vector<optim::Optimizer*> all_;
  std::int64_t loads_ = 0;  // of main(), when all optimizers were last made equal
};
template <class M, class F>
ReplicatedOptimizer(const DataParallel<M>&, const F&)
    -> ReplicatedOptimizer<std::invoke_result_t<const F&, const std::vector<Tensor>&>>;

}  // namespace braid::parallel
