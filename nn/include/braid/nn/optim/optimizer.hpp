#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <braid/core/kernel_args/optim.hpp>
#include <braid/core/kernel_table.hpp>
#include <braid/core/state_dict.hpp>
#include <braid/core/tensor.hpp>
#include <braid/nn/parameter.hpp>
#include <braid/nn/walks.hpp>

// What all optimizers share. They keep the handles of the parameters: `to(model, device)` and
// load_state_dict write into the same tensors, so that an optimizer made before stays right. Their
// state is a tree: state_dict(optimizer) and load_state_dict(optimizer, dict) save and restore it,
// the counts of steps included (not the options).
namespace braid::optim {

/// Parameters with options of their own. `optim::AdamW optimizer({{weights, {.weight_decay = 0.1}},
/// {biases, {.weight_decay = 0}}})`.
template <class Options> struct ParameterGroup {
  std::vector<Tensor> parameters;
  Options options = {};
};

/// What all optimizers share. One thread at a time.
class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer();

  /// Removes the gradients: they are none afterwards, not zero.
  void zero_grad() noexcept;
  /// Updates every parameter that has a gradient, in place; one without is left as it is, and its
  /// state too. Everything is checked and allocated before anything is written. Throws ShapeError,
  /// DTypeError or DeviceError for a gradient that does not fit its parameter, OutOfMemoryError;
  /// then nothing was changed. Warns, the first time, if no parameter has a gradient.
  void step();
  /// The two halves of step(), for optimizers that step together: after the first one has said yes
  /// for all of them, the second does what is left. Nothing that the first has seen may change in
  /// between. The second does nothing without the first.
  void prepare_step();
  void finish_step();

  /// Number of parameter groups; one, unless it was made from several.
  [[nodiscard]] std::size_t groups() const noexcept { return group_count_; }
  /// Throws IndexError for a group that is not there.
  [[nodiscard]] double lr(std::size_t group = 0) const;
  /// Of all groups. Throws ArgumentError unless lr is finite and >= 0.
  void set_lr(double lr);
  void set_lr(std::size_t group, double lr);
  /// Momentum or beta1, whichever it has; ArgumentError if it was made without.
  [[nodiscard]] double momentum(std::size_t group = 0) const;
  /// Throws ArgumentError unless 0 <= momentum < 1.
  void set_momentum(std::size_t group, double momentum);

  /// Takes over the learning rates and momenta (or beta1) of another one like this. Throws
  /// ArgumentError for another number of groups.
  void follow(const Optimizer& other);

  /// Of all groups, in their order.
  [[nodiscard]] const std::vector<Tensor>& parameters() const noexcept { return parameters_; }
  /// Updates of parameter i so far.
  [[nodiscard]] std::int64_t steps(std::size_t i) const;

  /// See load_state_dict(optimizer, dict).
  LoadReport load_state(std::span<const StateDict::value_type> dict,
                        const LoadOptions& options = {});

 protected:
  /// The tensors kept for each parameter, beside OptimItem's `m`, `v`, `s`.
  static constexpr std::size_t kStates = 3;
  // empty: not kept by this optimizer; they live as long as the process
  using StateNames = std::array<std::string_view, kStates>;

  /// `group_of[i]`: the group of parameter i, below `groups`.
  Optimizer(const char* name, std::vector<Tensor> parameters, std::vector<std::size_t> group_of,
            std::size_t groups, const StateNames& states);

  /// Parameters of one device, dtype and key, in one group, are updated by one call.
  struct Batch {
    Device device;
    DType dtype;
    std::size_t group;
    std::int64_t key;
    friend bool operator==(const Batch&, const Batch&) noexcept = default;
  };
  /// What, besides device, dtype and group, must be equal within a call, for a parameter that was
  /// updated `steps` times before.
  [[nodiscard]] virtual std::int64_t batch_key(std::size_t group,
                                               std::int64_t steps) const noexcept = 0;
  virtual void update(const Batch& batch, std::span<const OptimItem> items) = 0;
  [[nodiscard]] virtual bool has_kernel(const KernelTable& kernels) const noexcept = 0;
  /// Is state k (0 = m, 1 = v, 2 = s) kept for the parameters of a group? Asked only for states
  /// that have a name.
  [[nodiscard]] virtual bool keeps(std::size_t group, std::size_t k) const noexcept = 0;
  /// What state k of a parameter starts with.
  [[nodiscard]] virtual double first_state([[maybe_unused]] std::size_t group,
                                           [[maybe_unused]] std::size_t k) const noexcept {
    return 0;
  }
  [[nodiscard]] virtual double& lr_of(std::size_t group) noexcept = 0;
  /// Null if the optimizer has no such thing.
  [[nodiscard]] virtual double* momentum_of(std::size_t group) noexcept = 0;

  // one a parameter, made at its first gradient; unused vectors stay empty
  std::array<std::vector<nn::Buffer>, kStates> state_;
  nn::Buffer steps_;  // int64, one a parameter, on the host

 private:
  void check_group(const char* what, std::size_t group) const;
  /// For what only reads through lr_of and momentum_of.
  [[nodiscard]] Optimizer& mutable_self() const noexcept { return const_cast<Optimizer&>(*this); }
  void update_batches();
  void warn_of_no_gradient();
  void prepare_state(nn::Buffer& state, const Tensor& parameter, double first);

  const char* name_;
  std::vector<Tensor> parameters_;
  std::vector<std::size_t> group_of_;
  std::size_t group_count_;
  StateNames state_names_;
  // Reused by every step, so that it allocates nothing. One element for each parameter that has a
  // gradient.
  std::vector<OptimItem> items_, of_batch_;
  std::vector<Batch> batches_;
  std::vector<std::size_t> updated_;  // which parameter it is
  std::vector<char> done_;
  bool one_batch_ = true;
  bool warned_ = false;  // that no parameter had a gradient
  struct Dense {
    Tensor parameter, copy, grad;
  };
  std::vector<Dense> dense_;  // only for parameters or gradients that are not dense
};

namespace detail {

/// Parameters of all groups in a row, and the group of each.
struct Joined {
  std::vector<Tensor> parameters;
  std::vector<std::size_t> group_of;
};
template <class Options>
[[nodiscard]] Joined join_groups(const std::vector<ParameterGroup<Options>>& groups) {
  Joined all;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    all.parameters.insert(all.parameters.end(), groups[g].parameters.begin(),
                          groups[g].parameters.end());
    all.group_of.resize(all.parameters.size(), g);
  }
  return all;
}
template <class Options>
[[nodiscard]] std::vector<Options> options_of(const std::vector<ParameterGroup<Options>>& groups) {
  std::vector<Options> list;
  for (const ParameterGroup<Options>& g : groups) list.push_back(g.options);
  return list;
}

/// Words of the checks of options, each an ArgumentError `name: expected …, got …`.
void check_at_least_0(const char* name, const char* what, double value);
void check_below_1(const char* name, const char* what, double value);

/// An optimizer whose groups each have an `Options`, with lr, and perhaps momentum or beta1, among
/// its fields.
template <class Options> class WithOptions : public Optimizer {
 public:
  using Group = ParameterGroup<Options>;
  /// The options of a group, lr and momentum as they are now.
  [[nodiscard]] const Options& options(std::size_t group = 0) const { return options_.at(group); }

 protected:
  WithOptions(const char* name, const std::vector<Group>& groups, const StateNames& states)
      : WithOptions(name, join_groups(groups), options_of(groups), states) {}

  [[nodiscard]] double& lr_of(std::size_t group) noexcept final { return options_[group].lr; }
  [[nodiscard]] double* momentum_of(std::size_t group) noexcept final {
    if constexpr (requires(Options o) { o.momentum; })
      return options_[group].momentum == 0 && !keeps(group, 0) ? nullptr
                                                               : &options_[group].momentum;
    else if constexpr (requires(Options o) { o.beta1; }) return &options_[group].beta1;
    else return nullptr;
  }

 private:
  WithOptions(const char* name, Joined all, std::vector<Options> options, const StateNames& states)
      : Optimizer(name, std::move(all.parameters), std::move(all.group_of), options.size(), states),
        options_(std::move(options)) {}

  std::vector<Options> options_;
};

}  // namespace detail
}  // namespace braid::optim

namespace braid {

/// Restores what state_dict(optimizer) gave. Unlike a model's, the state is made where it does not
/// exist yet.
/// Throws ArgumentError that lists every missing, unexpected, misshapen and mistyped key; then
/// nothing was changed. Not strict: unexpected keys are reported only.
template <std::derived_from<optim::Optimizer> O>
LoadReport load_state_dict(O& optimizer, std::span<const StateDict::value_type> dict,
                           const LoadOptions& options = {}) {
  return optimizer.load_state(dict, options);
}

}  // namespace braid
