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

// The base class of all optimizers. An optimizer keeps handles to its parameters.
// `to(model, device)` and load_state_dict write into the same tensors, so an optimizer made before
// remains valid. Its state is a tree: state_dict(optimizer) and load_state_dict(optimizer, dict)
// save and restore it, including the step counts but not the options.
namespace braid::optim {

/// Parameters with their own options:
///
///     optim::AdamW optimizer({{weights, {.weight_decay = 0.1}}, {biases, {.weight_decay = 0}}});
template <class Options> struct ParameterGroup {
  std::vector<Tensor> parameters;
  Options options = {};
};

/// Base class of all optimizers. Not thread-safe.
class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer();

  /// Removes the gradients: afterwards they are undefined, not zero.
  void zero_grad() noexcept;
  /// Updates every parameter that has a gradient, in place. A parameter without one is left
  /// unchanged, as is its state. Everything is checked and allocated before anything is written.
  /// Throws ShapeError, DTypeError or DeviceError if a gradient does not fit its parameter, and
  /// OutOfMemoryError; then nothing was changed. Warns, the first time, if no parameter has a
  /// gradient.
  void step();
  /// The two halves of step(), for several optimizers that must step together. prepare_step checks
  /// everything and allocates the state; once it has succeeded for all optimizers, call
  /// finish_step, which does the updates. Parameters and gradients must not change in between.
  /// finish_step does nothing without prepare_step.
  void prepare_step();
  void finish_step();

  /// Number of parameter groups: 1, unless the optimizer was made from several.
  [[nodiscard]] std::size_t groups() const noexcept { return group_count_; }
  /// Returns the learning rate of a group. Throws IndexError if the group does not exist.
  [[nodiscard]] double lr(std::size_t group = 0) const;
  /// Sets the learning rate of all groups. Throws ArgumentError unless lr is finite and >= 0.
  void set_lr(double lr);
  void set_lr(std::size_t group, double lr);
  /// Returns the momentum or beta1, whichever the optimizer has. Throws ArgumentError if it was
  /// made without either.
  [[nodiscard]] double momentum(std::size_t group = 0) const;
  /// Throws ArgumentError unless 0 <= momentum < 1.
  void set_momentum(std::size_t group, double momentum);

  /// Copies the learning rates and momenta (or beta1) of another optimizer of the same kind. Throws
  /// ArgumentError if it has another number of groups.
  void follow(const Optimizer& other);

  /// The parameters of all groups, in order.
  [[nodiscard]] const std::vector<Tensor>& parameters() const noexcept { return parameters_; }
  /// Returns the number of updates of parameter i so far. Throws IndexError.
  [[nodiscard]] std::int64_t steps(std::size_t i) const;

  /// See load_state_dict(optimizer, dict).
  LoadReport load_state(std::span<const StateDict::value_type> dict,
                        const LoadOptions& options = {});

 protected:
  /// The largest number of state tensors per parameter: `m`, `v` and `s` of OptimItem.
  static constexpr std::size_t kStates = 3;
  // a state with an empty name is not kept; the texts must live as long as the process
  using StateNames = std::array<std::string_view, kStates>;

  /// `group_of[i]` is the group of parameter i, below `groups`.
  Optimizer(const char* name, std::vector<Tensor> parameters, std::vector<std::size_t> group_of,
            std::size_t groups, const StateNames& states);

  /// Parameters with equal device, dtype, group and key are updated by one call of update().
  struct Batch {
    Device device;
    DType dtype;
    std::size_t group;
    std::int64_t key;
    friend bool operator==(const Batch&, const Batch&) noexcept = default;
  };
  /// Returns the key of a parameter with `steps` updates so far. Parameters with different keys are
  /// not updated by one call of update().
  [[nodiscard]] virtual std::int64_t batch_key(std::size_t group,
                                               std::int64_t steps) const noexcept = 0;
  virtual void update(const Batch& batch, std::span<const OptimItem> items) = 0;
  [[nodiscard]] virtual bool has_kernel(const KernelTable& kernels) const noexcept = 0;
  /// Returns whether state k (0 = m, 1 = v, 2 = s) is kept for the parameters of a group. Called
  /// only for states that have a name.
  [[nodiscard]] virtual bool keeps(std::size_t group, std::size_t k) const noexcept = 0;
  /// Returns the initial value of state k.
  [[nodiscard]] virtual double first_state([[maybe_unused]] std::size_t group,
                                           [[maybe_unused]] std::size_t k) const noexcept {
    return 0;
  }
  [[nodiscard]] virtual double& lr_of(std::size_t group) noexcept = 0;
  /// Null if the optimizer has neither momentum nor beta1.
  [[nodiscard]] virtual double* momentum_of(std::size_t group) noexcept = 0;

  // one for each parameter, made at its first gradient; unused vectors stay empty
  std::array<std::vector<nn::Buffer>, kStates> state_;
  nn::Buffer steps_;  // int64, one for each parameter, on the host

 private:
  void check_group(const char* what, std::size_t group) const;
  /// For const functions that only read through lr_of and momentum_of.
  [[nodiscard]] Optimizer& mutable_self() const noexcept { return const_cast<Optimizer&>(*this); }
  void update_batches();
  void warn_of_no_gradient();
  void prepare_state(nn::Buffer& state, const Tensor& parameter, double first);

  const char* name_;
  std::vector<Tensor> parameters_;
  std::vector<std::size_t> group_of_;
  std::size_t group_count_;
  StateNames state_names_;
  // Reused by every step to avoid allocations. One element for each parameter that has a gradient.
  std::vector<OptimItem> items_, of_batch_;
  std::vector<Batch> batches_;
  std::vector<std::size_t> updated_;  // indices of the parameters
  std::vector<char> done_;
  bool one_batch_ = true;
  bool warned_ = false;  // about a step in which no parameter had a gradient
  struct Dense {
    Tensor parameter, copy, grad;
  };
  std::vector<Dense> dense_;  // only for parameters or gradients that are not contiguous
};

namespace detail {

/// The parameters of all groups in one list, and the group of each.
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

/// Checks of options. They throw ArgumentError with the text `name: expected …, got …`.
void check_at_least_0(const char* name, const char* what, double value);
void check_below_1(const char* name, const char* what, double value);

/// An optimizer whose groups each have `Options`, a struct with lr and perhaps momentum or beta1.
template <class Options> class WithOptions : public Optimizer {
 public:
  using Group = ParameterGroup<Options>;
  /// Returns the options of a group, with the current lr and momentum.
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

/// Restores the result of state_dict(optimizer). Unlike for a model, state tensors are created
/// where they do not exist yet. Throws ArgumentError that lists every missing and unexpected key
/// and every wrong shape and dtype; then nothing was changed. If not strict, unexpected keys are
/// only reported.
template <std::derived_from<optim::Optimizer> O>
LoadReport load_state_dict(O& optimizer, std::span<const StateDict::value_type> dict,
                           const LoadOptions& options = {}) {
  return optimizer.load_state(dict, options);
}

}  // namespace braid
