#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <braid/nn/optim/optimizer.hpp>
#include <braid/parallel/process.hpp>

namespace braid::parallel {

namespace detail {
/// Deals the parameters to ranks: the largest first, each to the rank that has the fewest numbers.
/// Returns the rank of each parameter.
[[nodiscard]] std::vector<int> partition_parameters(std::span<const Tensor> parameters, int ranks);
/// A collective: steps the optimizer of this rank (null if it has no parameters) and sends every
/// parameter from the rank that has updated it to the others. If preparing the step fails on one
/// rank, it throws on all and no parameter changes.
void step_shares(ProcessCommunicator& ranks, optim::Optimizer* optimizer,
                 std::span<const Tensor> parameters, std::span<const int> owners);
}  // namespace detail

/// Divides the state of an optimizer among the ranks (ZeRO, stage 1): each rank updates its share
/// of the parameters, and sends them to the others. All ranks must have the same gradients, as
/// after the backward of a DistributedDataParallel.
///
///     parallel::ZeroRedundancyOptimizer optimizer(
///         parameters(model), process,
///         [](const std::vector<Tensor>& p) { return optim::AdamW(p, {.lr = 1e-3}); });
///
/// Throws    ArgumentError for no parameters; in step() on all ranks what the step of one rank
///           throws
/// Source    Rajbhandari et al. 2020, ZeRO; torch.distributed.optim.ZeroRedundancyOptimizer
template <class O> class ZeroRedundancyOptimizer {
 public:
  /// `make(parameters)` returns the optimizer of a list of parameters.
  template <class F>
  ZeroRedundancyOptimizer(std::vector<Tensor> parameters,
                          std::shared_ptr<ProcessCommunicator> ranks, const F& make)
      : parameters_(std::move(parameters)),
        ranks_(std::move(ranks)),
        owners_(detail::partition_parameters(parameters_, ranks_->size())) {
    std::vector<Tensor> mine;
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      if (owners_[k] == ranks_->rank()) mine.push_back(parameters_[k]);
    if (!mine.empty()) optimizer_.reset(new O(make(mine)));
  }
  template <class F>
  ZeroRedundancyOptimizer(std::vector<Tensor> parameters, Process& process, const F& make)
      : ZeroRedundancyOptimizer(std::move(parameters), process.shared_communicator(), make) {}

  /// Removes the gradients of all parameters.
  void zero_grad() noexcept {
    for (const Tensor& p : parameters_) p.set_grad({});
  }
  /// All ranks call it together.
  void step() { detail::step_shares(*ranks_, optimizer_.get(), parameters_, owners_); }
  /// Sets the learning rate of all groups. All ranks must set the same.
  void set_lr(double lr) {
    if (optimizer_) optimizer_->set_lr(lr);
  }

  /// The optimizer of this rank's share; null if there are more ranks than parameters.
  [[nodiscard]] O* local() noexcept { return optimizer_.get(); }
  [[nodiscard]] const O* local() const noexcept { return optimizer_.get(); }
  /// The rank that updates each parameter.
  [[nodiscard]] const std::vector<int>& owners() const noexcept { return owners_; }

 private:
  std::vector<Tensor> parameters_;
  std::shared_ptr<ProcessCommunicator> ranks_;
  std::vector<int> owners_;
  std::unique_ptr<O> optimizer_;
};
template <class P, class F>
ZeroRedundancyOptimizer(std::vector<Tensor>, P&&, const F&)
    -> ZeroRedundancyOptimizer<std::invoke_result_t<const F&, const std::vector<Tensor>&>>;

}  // namespace braid::parallel
