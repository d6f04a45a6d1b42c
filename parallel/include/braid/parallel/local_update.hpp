#pragma once
#include <memory>
#include <type_traits>
#include <vector>

#include <braid/nn/optim/optimizer.hpp>
#include <braid/parallel/data_parallel.hpp>
#include <braid/parallel/local_replicas.hpp>

namespace braid::parallel {

namespace detail {
/// Sums the gradients of all devices' copies on the first one; those of the others become none.
/// Returns whether any of them had one.
bool sum_gradients(LocalReplicas& replicas);
/// Prepares and finishes a step of every optimizer, each on its device, with the first device's
/// gradients. What throws has changed no parameter, unless a device fails in the middle of writing:
/// then every later step throws, until the optimizers' states are loaded.
void step_together(LocalReplicas& replicas, std::span<optim::Optimizer* const> optimizers);
}  // namespace detail

/// The optimizer of a DataParallel with `update = Update::local`: every device keeps the weights
/// and an optimizer, and takes the same step with the sum of all gradients, so that no weight is
/// sent in training. The copies stay equal to the last bit.
///
///     parallel::DataParallel model(Net{}, devices(), parallel::DataParallelOptions{.update =
///     parallel::Update::local});
///     parallel::LocalUpdate optimizer(model, [](const std::vector<Tensor>& p) { return
///     optim::AdamW(p, {.lr = 1e-3}); });
///
/// Gradients   a backward leaves in each device's copy what its replica has seen; step(), or
///             reduce(), adds them up in the module's own, in the order of Communicator::reduce
///             (fixed by `local`). To clip, or to look at them, call reduce() first. Several
///             backwards before a step add up.
/// Throws      ArgumentError for a model without `update = Update::local`, or whose parameters are
///             not what they were; what the optimizers throw; Error after a step that failed on one
///             device when others had taken it, until load_state
/// Notes       there is no gradient of the summed gradient; gradients of gradients by inputs add up
///             as others do
template <class O> class LocalUpdate {
 public:
  /// `make(parameters)` gives the optimizer of one device; it is called for each, with the
  /// parameters in the order of `parameters(model)`.
  template <class M, class F>
  LocalUpdate(const DataParallel<M>& model, const F& make) : replicas_(model.local_replicas()) {
    for (const std::vector<Tensor>& of_device : replicas_->parameters())
      optimizers_.emplace_back(new O(make(of_device)));
    for (const std::unique_ptr<O>& optimizer : optimizers_) all_.push_back(optimizer.get());
  }

  /// Removes the gradients, on all devices, as `zero_grad(model)` does; `main().zero_grad()` would
  /// leave those of the others.
  void zero_grad() noexcept {
    for (optim::Optimizer* const optimizer : all_) optimizer->zero_grad();
  }
  /// The sum of all gradients in the module's own parameters.
  void reduce() { detail::sum_gradients(*replicas_); }
  /// reduce(), then the same step on every device, with the first one's learning rates and momenta.
  void step() {
    follow();
    detail::step_together(*replicas_, all_);
  }

  /// The optimizer of the first device, whose parameters are the module's own: for schedules, and
  /// to save. The learning rates and momenta that are set there hold for all.
  [[nodiscard]] O& main() noexcept { return *optimizers_.front(); }
  [[nodiscard]] const O& main() const noexcept { return *optimizers_.front(); }
  /// Those of all devices, in their order; and the weights that each of them steps.
  [[nodiscard]] const std::vector<std::unique_ptr<O>>& all() const noexcept { return optimizers_; }
  [[nodiscard]] const std::vector<std::vector<Tensor>>& weights() const noexcept {
    return replicas_->parameters();
  }
  /// load_state_dict for all devices, from what state_dict(main()) gave, whatever the number of
  /// devices then.
  LoadReport load_state(std::span<const StateDict::value_type> dict,
                        const LoadOptions& options = {}) {
    LoadReport report;
    for (std::size_t i = optimizers_.size(); i-- > 0;) {
      report = optimizers_[i]->load_state(dict, options);
      replicas_->set_torn(i > 0);
    }
    return report;
  }

 private:
  void follow() {
    const O& first = main();
    for (std::size_t i = 1; i < optimizers_.size(); ++i) optimizers_[i]->follow(first);
  }
  std::shared_ptr<detail::LocalReplicas> replicas_;
  std::vector<std::unique_ptr<O>> optimizers_;
  std::vector<optim::Optimizer*> all_;
};
template <class M, class F>
LocalUpdate(const DataParallel<M>&, const F&)
    -> LocalUpdate<std::invoke_result_t<const F&, const std::vector<Tensor>&>>;

}  // namespace braid::parallel
