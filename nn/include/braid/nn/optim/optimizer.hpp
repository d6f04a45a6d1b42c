#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <braid/core/state_dict.hpp>
#include <braid/core/tensor.hpp>
#include <braid/nn/internal/habits.hpp>
#include <braid/nn/parameter.hpp>
#include <braid/nn/walks.hpp>

// The base class of all optimizers. An optimizer keeps handles to its parameters.
// `to(model, device)` and load_state_dict write into the same tensors, so an optimizer made before
// remains valid. Its state is a tree: state_dict(optimizer) and load_state_dict(optimizer, dict)
// save and restore it, including the step counts but not the options. An optimizer that is chosen
// at run time is saved through its base class: state_dict(*optimizer) for a
// std::unique_ptr<optim::Optimizer>, and training::Checkpoint(folder, model, *optimizer).
namespace braid::optim {

namespace detail {

struct Update;   // the parameters, gradients and states that a kernel updates
struct Updates;  // those of one step

/// The names of the states, in state_dict and in braid_names. An optimizer does not have a state
/// whose name is empty.
struct StateNames {
  std::string_view m = {}, v = {}, s = {};
};

template <bool on, class T> auto field_if(T& field) {
  if constexpr (on) return std::tie(field);
  else return std::tuple<>();
}
/// `exp_avg, steps`: the names of Optimizer::fields_of.
template <const StateNames& names>
inline constexpr auto kFieldNames = [] {
  constexpr std::string_view all[] = {names.m, names.v, names.s, "steps"};
  constexpr std::size_t size = [&] {
    std::size_t n = 0;
    for (const std::string_view name : all) n += name.empty() ? 0 : name.size() + (n == 0 ? 0 : 2);
    return n;
  }();
  std::array<char, size> text{};
  std::size_t at = 0;
  for (const std::string_view name : all) {
    if (name.empty()) continue;
    if (at != 0) text[at++] = ',', text[at++] = ' ';
    for (const char c : name) text[at++] = c;
  }
  return text;
}();

}  // namespace detail

/// Declares the state of an optimizer, once: BRAID_OPTIMIZER_STATE(.m = "exp_avg"). Must be public.
// Templates, so that only a program that saves an optimizer compiles them.
#define BRAID_OPTIMIZER_STATE(...)                                                             \
  static constexpr ::braid::optim::detail::StateNames braid_state{__VA_ARGS__};                \
  template <auto& state = braid_state> auto braid_fields() { return fields_of<state>(*this); } \
  template <auto& state = braid_state> auto braid_fields() const {                             \
    return fields_of<state>(*this);                                                            \
  }                                                                                            \
  template <auto& state = braid_state> static constexpr ::std::string_view braid_names() {     \
    constexpr auto& text = ::braid::optim::detail::kFieldNames<state>;                         \
    return {text.data(), text.size()};                                                         \
  }                                                                                            \
  void braid_owner() const {}

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
  /// As step(), with every gradient multiplied by the number `grad_factor`, which is read on the
  /// device, in the same pass. Bit for bit what step() does after the gradients were multiplied in
  /// place; here they keep their values. For the factor of clip_grad_norm. grad_factor is one
  /// floating-point number on any device. Throws as step(), ShapeError unless it has one element,
  /// DTypeError unless it is floating-point.
  void step(const Tensor& grad_factor);
  /// The two halves of step(), for several optimizers that must step together. prepare_step checks
  /// everything and allocates the state; once it has succeeded for all optimizers, call
  /// finish_step, which does the updates. Parameters and gradients must not change in between.
  /// finish_step does nothing without prepare_step.
  void prepare_step();
  void prepare_step(const Tensor& grad_factor);
  void finish_step();

  /// Number of parameter groups: 1, unless the optimizer was made from several.
  [[nodiscard]] std::size_t groups() const noexcept { return kept_.size(); }
  /// Returns the learning rate of a group. Throws IndexError if the group does not exist.
  [[nodiscard]] double lr(std::size_t group = 0) const;
  /// Sets the learning rate of all groups. Throws ArgumentError unless lr is finite and >= 0, and
  /// CaptureError inside a captured step, where only the first call would have an effect.
  void set_lr(double lr);
  void set_lr(std::size_t group, double lr);
  /// Returns the momentum or beta1, whichever the optimizer has. Throws ArgumentError if it was
  /// made without either.
  [[nodiscard]] double momentum(std::size_t group = 0) const;
  /// Throws ArgumentError unless 0 <= momentum < 1.
  void set_momentum(std::size_t group, double momentum);
  /// Returns whether a group was made with momentum or beta1.
  [[nodiscard]] bool has_momentum(std::size_t group = 0) const;

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
  /// Returns how often a state was loaded. A change of it tells the owner of other optimizers,
  /// which must have the same state, to copy it.
  [[nodiscard]] std::int64_t loads() const noexcept { return loads_; }
  // How a walk sees an optimizer by its base class, when its class is known at run time only.
  using braid_erased = void;
  void braid_fill(const tree::detail::Fill& fill, const tree::Name& name);

  /// Returns or throws what load_state does, and changes nothing.
  [[nodiscard]] LoadReport check_state(std::span<const StateDict::value_type> dict,
                                       const LoadOptions& options = {}) const;

 protected:
  /// The largest number of state tensors per parameter: `m`, `v` and `s` of Kept.
  static constexpr std::size_t kStates = 3;

  /// Parameters of a group with different keys are not updated by one call of update(): they all
  /// have key 0, or those before their first update have key 1, or the key is the step count.
  enum class Key : std::uint8_t { none, is_first, steps };
  /// How the state of a group's parameters is kept. A state without a name is never kept.
  struct Kept {
    bool m = true, v = true, s = true;
    double first = 0;  ///< the initial value of each state
    Key key = Key::none;
  };

  /// What distinguishes a class of optimizers.
  struct Traits {
    const char* name;
    detail::StateNames states;
    /// null if the update consists of ops (compute) and not of a kernel (update)
    bool (*has_kernel)(Device device) = nullptr;
  };

  /// `group_of[i]` is the group of parameter i, an index of `kept`.
  Optimizer(const Traits& traits, std::vector<Tensor> parameters, std::vector<std::size_t> group_of,
            std::vector<Kept> kept);

  /// Parameters with equal device, dtype, group and key are updated by one call of update().
  struct Batch {
    Device device;
    DType dtype;
    std::size_t group;
    std::int64_t key;
    friend bool operator==(const Batch&, const Batch&) noexcept = default;
  };
  /// Returns a function that returns the key of the batch that update() is called for, at the time
  /// of a replay; an empty one if the thread does not record a step.
  [[nodiscard]] std::function<std::int64_t()> key_at_replay(const Batch& batch) const;
  /// Queues the kernel of a batch.
  virtual void update(const Batch& batch, const detail::Update& what);

  /// A parameter, its gradient and its state, for an update that consists of ops. 16-bit ones are
  /// converted to float32.
  struct Values {
    Tensor p;
    const Tensor g;
    Tensor m, v, s;
  };
  /// Replaces p and the states by their new values, with ops that write into none of them. `step`
  /// counts from 1. Called by prepare_step, in no_grad; finish_step writes the values.
  virtual void compute(Values& values, std::size_t group, std::int64_t step) const;

  /// Whether state k (0 = m, 1 = v, 2 = s) is kept for the parameters of a group.
  [[nodiscard]] bool keeps(std::size_t group, std::size_t k) const noexcept;
  [[nodiscard]] virtual double& lr_of(std::size_t group) noexcept = 0;
  /// Null if the optimizer has neither momentum nor beta1.
  [[nodiscard]] virtual double* momentum_of(std::size_t group) noexcept = 0;

  /// The fields of BRAID_OPTIMIZER_STATE: the states that have a name, and the step counts.
  template <const detail::StateNames& names, class Self> static auto fields_of(Self& self) {
    return std::tuple_cat(detail::field_if<!names.m.empty()>(self.state_[0]),
                          detail::field_if<!names.v.empty()>(self.state_[1]),
                          detail::field_if<!names.s.empty()>(self.state_[2]),
                          std::tie(self.steps_));
  }

 private:
  // one for each parameter, made at its first gradient; unused vectors stay empty
  std::array<std::vector<nn::Buffer>, kStates> state_;
  nn::Buffer steps_;  // int64, one for each parameter, on the host
  std::int64_t loads_ = 0;

  [[nodiscard]] std::int64_t batch_key(std::size_t group, std::int64_t steps) const noexcept;
  void check_group(const char* what, std::size_t group) const;
  /// For const functions that only read through lr_of and momentum_of.
  [[nodiscard]] Optimizer& mutable_self() const noexcept { return const_cast<Optimizer&>(*this); }
  using States = std::array<std::vector<nn::Buffer>, kStates>;
  LoadReport match_state(std::span<const StateDict::value_type> dict, const LoadOptions& options,
                         States* states, nn::Buffer* steps) const;
  void prepare(const Tensor* grad_factor);
  void finish_step_or_warn();
  [[nodiscard]] const Tensor* factor_of(Device device, DType dtype) const noexcept;
  void update_batches();
  void record_step();
  void warn_of_no_gradient();
  void prepare_state(nn::Buffer& state, const Tensor& parameter, double first);
  void compute_all();
  void write_computed();

  Traits traits_;
  const char* name_;
  std::vector<Tensor> parameters_;
  std::vector<std::size_t> group_of_;
  std::vector<Kept> kept_;  // by group
  // Reused by every step to avoid allocations. One element for each parameter that has a gradient.
  std::unique_ptr<detail::Updates> updates_;
  std::vector<Batch> batches_;
  std::vector<std::size_t> updated_;  // indices of the parameters
  std::vector<char> done_;
  std::size_t first_of_batch_ = 0;  // the parameter that update_batches() starts a batch with
  bool one_batch_ = true;
  bool warned_ = false;  // about a step in which no parameter had a gradient
  struct Dense {
    Tensor parameter, copy, grad;
  };
  std::vector<Dense> dense_;  // only for parameters or gradients that are not contiguous
  struct Computed {
    std::size_t i;
    Tensor p;
    std::array<Tensor, kStates> state;
  };
  std::vector<Computed> computed_;  // only for an optimizer without a kernel
  std::vector<Tensor> factors_;     // the gradients' factor, for each device and dtype
};

namespace detail {

/// The parameters of all groups in one list, and the group of each.
struct Joined {
  std::vector<Tensor> parameters;
  std::vector<std::size_t> group_of;
  void add(const std::vector<Tensor>& of_group, std::size_t group);
};
template <class Options>
[[nodiscard]] Joined join_groups(const std::vector<ParameterGroup<Options>>& groups) {
  Joined all;
  for (std::size_t g = 0; g < groups.size(); ++g) all.add(groups[g].parameters, g);
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

/// An optimizer whose groups each have `Options`, a struct with lr and possibly momentum or beta1.
template <class Options> class WithOptions : public Optimizer {
 public:
  using Group = ParameterGroup<Options>;
  /// Returns the options of a group, with the current lr and momentum.
  [[nodiscard]] const Options& options(std::size_t group = 0) const { return options_.at(group); }

 protected:
  using Kept = Optimizer::Kept;
  using Traits = Optimizer::Traits;
  /// `kept` returns how the state is kept with some options.
  WithOptions(const Traits& traits, const std::vector<Group>& groups,
              Kept (*kept)(const Options& options))
      : WithOptions(traits, join_groups(groups), options_of(groups), kept) {}
  WithOptions() : WithOptions({}, {}, nullptr) {}  // for constructors that are a compile error

  [[nodiscard]] double& lr_of(std::size_t group) noexcept final { return options_[group].lr; }
  [[nodiscard]] double* momentum_of(std::size_t group) noexcept final {
    if constexpr (requires(Options o) { o.momentum; })
      return options_[group].momentum == 0 && !keeps(group, 0) ? nullptr
                                                               : &options_[group].momentum;
    else if constexpr (requires(Options o) { o.beta1; }) return &options_[group].beta1;
    else return nullptr;
  }

 private:
  static std::vector<Kept> kept_of(const std::vector<Options>& options,
                                   Kept (*kept)(const Options& options)) {
    std::vector<Kept> list;
    for (const Options& o : options) list.push_back(kept(o));
    return list;
  }
  WithOptions(const Traits& traits, Joined all, std::vector<Options> options,
              Kept (*kept)(const Options& options))
      : Optimizer(traits, std::move(all.parameters), std::move(all.group_of),
                  kept_of(options, kept)),
        options_(std::move(options)) {}

  std::vector<Options> options_;
};

}  // namespace detail
}  // namespace braid::optim

namespace braid {

/// Restores the result of state_dict(optimizer). Unlike for a model, state tensors are created
/// where they do not exist yet. If not strict, unexpected keys are only reported.
///
/// Throws    ArgumentError that lists every missing and unexpected key and every wrong shape and
///           dtype; then nothing was changed
///
///     save_safetensors("adam.safetensors", state_dict(optimizer));
///     load_state_dict(optimizer, load_safetensors("adam.safetensors").tensors);
template <std::derived_from<optim::Optimizer> O>
LoadReport load_state_dict(O& optimizer, std::span<const StateDict::value_type> dict,
                           const LoadOptions& options = {}) {
  return optimizer.load_state(dict, options);
}

}  // namespace braid
