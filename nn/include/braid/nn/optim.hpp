#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <braid/core/kernel_table.hpp>
#include <braid/core/state_dict.hpp>
#include <braid/core/tensor.hpp>
#include <braid/nn/parameter.hpp>
#include <braid/nn/walks.hpp>

// Optimizers. They keep the handles of the parameters: `to(model, device)` and load_state_dict write into the same tensors, so that an optimizer made before
// stays right. Their state is a tree: state_dict(optimizer) and load_state_dict(optimizer, dict) save and restore it, the counts of steps included (not the
// options).
namespace braid::optim {

/// What all optimizers share. One thread at a time.
class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer();

  /// Removes the gradients: they are none afterwards, not zero.
  void zero_grad() noexcept;
  /// Updates every parameter that has a gradient, in place; one without is left as it is, and its state too. Everything is checked and allocated before
  /// anything is written. Throws ShapeError, DTypeError or DeviceError for a gradient that does not fit its parameter, OutOfMemoryError; then nothing was
  /// changed.
  void step();

  [[nodiscard]] double lr() const noexcept { return lr_; }
  /// Throws ArgumentError unless lr is finite and >= 0.
  void set_lr(double lr);
  [[nodiscard]] const std::vector<Tensor>& parameters() const noexcept { return parameters_; }
  /// Updates of parameter i so far.
  [[nodiscard]] std::int64_t steps(std::size_t i) const;

  /// See load_state_dict(optimizer, dict).
  LoadReport load_state(std::span<const StateDict::value_type> dict, const LoadOptions& options = {});

 protected:
  /// `state`: names of the tensors kept for each parameter, two at most; they live as long as the process.
  Optimizer(const char* name, std::vector<Tensor> parameters, double lr, std::vector<std::string_view> state);

  /// Parameters of one device, dtype and group are updated by one call.
  struct Group {
    Device device;
    DType dtype;
    std::int64_t key;
    friend bool operator==(const Group&, const Group&) noexcept = default;
  };
  /// What, besides device and dtype, must be equal within a call, for a parameter that was updated `steps` times before.
  [[nodiscard]] virtual std::int64_t group_key(std::int64_t steps) const noexcept = 0;
  virtual void update(const Group& group, std::span<const OptimItem> items) = 0;
  [[nodiscard]] virtual bool has_kernel(const KernelTable& kernels) const noexcept = 0;

  std::vector<nn::Buffer> first_, second_;  // one a parameter, made at its first gradient; unused vectors stay empty
  nn::Buffer steps_;                        // int64, one a parameter, on the host

 private:
  [[nodiscard]] std::vector<nn::Buffer>& state(std::size_t i) noexcept { return i == 0 ? first_ : second_; }
  void prepare();
  void update_groups();
  void prepare_state(nn::Buffer& state, const Tensor& parameter);

  const char* name_;
  double lr_;
  std::vector<Tensor> parameters_;
  std::vector<std::string_view> state_names_;
  // Reused by every step, so that it allocates nothing. One element for each parameter that has a gradient.
  std::vector<OptimItem> items_, of_group_;
  std::vector<Group> groups_;
  std::vector<std::size_t> updated_;  // which parameter it is
  std::vector<char> done_;
  bool one_group_ = true;
  struct Dense {
    Tensor parameter, copy, grad;
  };
  std::vector<Dense> dense_;  // only for parameters or gradients that are not dense
};

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
  bool maximize = false;
};

/// Stochastic gradient descent. With g = grad + weight_decay p (grad negated by maximize):
/// m = momentum m + (1 - dampening) g (at a parameter's first gradient m = g); p -= lr m, with nesterov p -= lr (g + momentum m), without momentum p -= lr g.
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    ArgumentError for options out of range, no parameters, one twice or one that an op made; DTypeError
/// Source    Sutskever et al. 2013 (momentum and Nesterov's variant), in PyTorch's form
class SGD final : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SgdOptions& options = {});
  /// The options it was made with, lr as it is now.
  [[nodiscard]] SgdOptions options() const noexcept;

  auto braid_fields() { return std::tie(first_, steps_); }
  auto braid_fields() const { return std::tie(first_, steps_); }
  static constexpr std::string_view braid_names() { return "momentum, steps"; }
  void braid_owner() const {}

 private:
  [[nodiscard]] std::int64_t group_key(std::int64_t steps) const noexcept override;
  void update(const Group& group, std::span<const OptimItem> items) override;
  [[nodiscard]] bool has_kernel(const KernelTable& kernels) const noexcept override;

  SgdOptions options_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
};

/// Adam with decoupled weight decay: p *= 1 - lr weight_decay; m = β1 m + (1 - β1) g; v = β2 v + (1 - β2) g²;
/// p -= lr / (1 - β1^t) m / (√v / √(1 - β2^t) + eps), t counted for each parameter.
///
/// Types     floating point; float16 and bfloat16 are computed in float32
/// Throws    as SGD
/// Source    Loshchilov & Hutter 2019, arXiv:1711.05101
class AdamW final : public Optimizer {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
  [[nodiscard]] AdamWOptions options() const noexcept;

  auto braid_fields() { return std::tie(first_, second_, steps_); }
  auto braid_fields() const { return std::tie(first_, second_, steps_); }
  static constexpr std::string_view braid_names() { return "exp_avg, exp_avg_sq, steps"; }
  void braid_owner() const {}

 private:
  [[nodiscard]] std::int64_t group_key(std::int64_t steps) const noexcept override;
  void update(const Group& group, std::span<const OptimItem> items) override;
  [[nodiscard]] bool has_kernel(const KernelTable& kernels) const noexcept override;

  AdamWOptions options_;
};

}  // namespace braid::optim

namespace braid {

/// Restores what state_dict(optimizer) gave. Unlike a model's, the state is made where it does not exist yet.
/// Throws ArgumentError that lists every missing, unexpected, misshapen and mistyped key; then nothing was changed. Not strict: unexpected keys are reported
/// only.
template <std::derived_from<optim::Optimizer> O>
LoadReport load_state_dict(O& optimizer, std::span<const StateDict::value_type> dict, const LoadOptions& options = {}) {
  return optimizer.load_state(dict, options);
}

}  // namespace braid
