#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <braid/core/state_dict.hpp>
#include <braid/core/tree.hpp>
#include <braid/nn/optim/optimizer.hpp>
#include <braid/parallel/process.hpp>

namespace braid::parallel {

namespace detail {
/// Deals the parameters to ranks: the largest first, each to the rank that has the fewest numbers.
/// Returns the rank of each parameter.
[[nodiscard]] std::vector<int> partition_parameters(std::span<const Tensor> parameters, int ranks);
/// The number of ranks. Throws ArgumentError for a null communicator.
[[nodiscard]] int count_ranks(const ProcessCommunicator* ranks);
/// A collective: steps the optimizer of this rank (null if it has no parameters) and sends every
/// parameter from the rank that has updated it to the others. If preparing the step fails on one
/// rank, it throws on all and no parameter changes.
void step_shares(ProcessCommunicator& ranks, optim::Optimizer* optimizer,
                 std::span<const Tensor> parameters, std::span<const int> owners);

/// Where the parameters of an optimizer are updated whose state is divided.
struct ShareMap {
  std::vector<int> owners;          ///< by parameter of the whole optimizer
  std::vector<std::size_t> places;  ///< by parameter of this rank's: its index in the whole one
};
/// `owners` are those of `parameters`. Throws ArgumentError if the optimizers have other parameters
/// or another number of groups; `mine` is null if this rank has no parameters.
[[nodiscard]] ShareMap map_share(std::span<const Tensor> parameters, std::span<const int> owners,
                                 int rank, const optim::Optimizer& whole,
                                 const optim::Optimizer* mine);
/// A collective: returns the state of all ranks on rank `to`, with the names of `whole`, and an
/// empty dict on the others. `mine` is the state of this rank's optimizer.
[[nodiscard]] StateDict consolidate(ProcessCommunicator& ranks, const ShareMap& map,
                                    const optim::Optimizer& whole, const tree::Flat& whole_state,
                                    const StateDict& mine, int to);
/// Loads the part of this rank of a dict of the whole optimizer.
LoadReport load_share(const ShareMap& map, const optim::Optimizer& whole, optim::Optimizer* mine,
                      std::span<const StateDict::value_type> dict, const LoadOptions& options);
}  // namespace detail

/// Divides the state of an optimizer among the ranks (ZeRO, stage 1): each rank updates its share
/// of the parameters, and sends them to the others. All ranks must have the same gradients, as
/// after the backward of a DistributedDataParallel.
///
///     parallel::ZeroRedundancyOptimizer optimizer(
///         parameters(model), process,
///         [](const std::vector<Tensor>& p) { return optim::AdamW(p, {.lr = 1e-3}); });
///     training::Checkpoint checkpoint(
///         {.folder = "runs/digits", .ranks = parallel::checkpoint_ranks(process)}, model,
///         optimizer);
///
/// State     that of the undivided optimizer: state_dict(optim::AdamW) and
///           consolidate_state_dict() have the same names, and each loads the other's. The number
///           of ranks may differ from the one at saving
/// Throws    ArgumentError for no parameters, or if `make` does not return an optimizer of the
///           parameters that it gets; in step() on all ranks what the step of one rank throws
/// Source    Rajbhandari et al. 2020, ZeRO; torch.distributed.optim.ZeroRedundancyOptimizer
template <class O> class ZeroRedundancyOptimizer {
 public:
  /// `make(parameters)` returns the optimizer of a list of parameters. It is called for all
  /// parameters, and for those of this rank.
  template <class F>
  ZeroRedundancyOptimizer(std::vector<Tensor> parameters,
                          std::shared_ptr<ProcessCommunicator> ranks, const F& make)
      : parameters_(std::move(parameters)),
        ranks_(std::move(ranks)),
        owners_(detail::partition_parameters(parameters_, detail::count_ranks(ranks_.get()))),
        whole_(new O(make(parameters_))) {
    std::vector<Tensor> mine;
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      if (owners_[k] == ranks_->rank()) mine.push_back(parameters_[k]);
    if (!mine.empty()) optimizer_.reset(new O(make(mine)));
    map_ = detail::map_share(parameters_, owners_, ranks_->rank(), *whole_, optimizer_.get());
  }
  template <class F>
  ZeroRedundancyOptimizer(std::vector<Tensor> parameters, Process& process, const F& make)
      : ZeroRedundancyOptimizer(std::move(parameters), process.shared_communicator(), make) {}

  /// Removes the gradients of all parameters.
  void zero_grad() noexcept {
    for (const Tensor& p : parameters_) p.set_grad({});
  }
  /// All ranks call it together.
  void step() {
    if (optimizer_) optimizer_->follow(*whole_);
    detail::step_shares(*ranks_, optimizer_.get(), parameters_, owners_);
  }

  /// All parameters, as they were passed to the constructor: those of all ranks.
  [[nodiscard]] const std::vector<Tensor>& parameters() const noexcept { return parameters_; }
  /// Number of parameter groups of the undivided optimizer.
  [[nodiscard]] std::size_t groups() const noexcept { return whole_->groups(); }
  /// Returns the learning rate of a group. Throws IndexError if the group does not exist.
  [[nodiscard]] double lr(std::size_t group = 0) const { return whole_->lr(group); }
  /// Sets the learning rate of all groups, or of one. All ranks must set the same.
  void set_lr(double lr) { whole_->set_lr(lr); }
  void set_lr(std::size_t group, double lr) { whole_->set_lr(group, lr); }
  /// For schedules: an optimizer of all parameters, whose learning rates and momenta apply to every
  /// step. It has no state, and must not step itself.
  [[nodiscard]] optim::Optimizer& rates() noexcept { return *whole_; }

  /// Returns the state of the undivided optimizer on rank `to`, on the CPU, and an empty dict on
  /// the other ranks. All ranks call it together.
  ///
  /// Throws    ArgumentError on all ranks if they pass different ranks, or one that does not exist;
  ///           Error if rank `to` has not enough memory
  [[nodiscard]] StateDict consolidate_state_dict(int to = 0) const {
    StateDict mine;
    if (optimizer_) mine = state_dict(*optimizer_);
    return detail::consolidate(*ranks_, map_, *whole_, tree::flatten(*whole_), mine, to);
  }
  /// Loads the state of the undivided optimizer, of which this rank keeps its share. Every rank
  /// passes the whole dict; not a collective.
  ///
  /// Throws    as load_state_dict of an optimizer, on every rank the same; then nothing was changed
  LoadReport load_state_dict(std::span<const StateDict::value_type> dict,
                             const LoadOptions& options = {}) {
    return detail::load_share(map_, *whole_, optimizer_.get(), dict, options);
  }

  /// The optimizer of this rank's share; null if there are more ranks than parameters.
  [[nodiscard]] const O* local() const noexcept { return optimizer_.get(); }
  /// Loads state_dict(*local()), on this rank.
  void restore_local(std::span<const StateDict::value_type> dict) {
    if (optimizer_) optimizer_->load_state(dict);
  }
  /// The rank that updates each parameter.
  [[nodiscard]] const std::vector<int>& owners() const noexcept { return owners_; }
  [[nodiscard]] const ProcessCommunicator& ranks() const noexcept { return *ranks_; }

 private:
  std::vector<Tensor> parameters_;
  std::shared_ptr<ProcessCommunicator> ranks_;
  std::vector<int> owners_;
  std::unique_ptr<O> whole_;  // names the state, holds the rates; never steps
  std::unique_ptr<O> optimizer_;
  detail::ShareMap map_;
};
template <class P, class F>
ZeroRedundancyOptimizer(std::vector<Tensor>, P&&, const F&)
    -> ZeroRedundancyOptimizer<std::invoke_result_t<const F&, const std::vector<Tensor>&>>;

}  // namespace braid::parallel

namespace braid {

/// Restores a state on this rank: see ZeroRedundancyOptimizer::load_state_dict.
template <class O>
LoadReport load_state_dict(parallel::ZeroRedundancyOptimizer<O>& optimizer,
                           std::span<const StateDict::value_type> dict,
                           const LoadOptions& options = {}) {
  return optimizer.load_state_dict(dict, options);
}

}  // namespace braid
