#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <braid/nn/module.hpp>
#include <braid/nn/optim/optimizer.hpp>

namespace braid::optim {

/// The options of GradScaler; the defaults are PyTorch's.
struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;             ///< above 1
  double backoff_factor = 0.5;          ///< between 0 and 1
  std::int64_t growth_interval = 2000;  ///< steps without an overflow before the scale grows
  bool enabled = true;  ///< false: scale and unscale_ change nothing, step only calls step
};

/// Multiplies the loss, so that gradients are not rounded to 0 in float16, and divides them before
/// the step. A step whose gradients have become infinite or NaN is left out, and the scale
/// becomes smaller. For Autocast with float16; bfloat16 has the range of float32 and needs none.
///
/// The scale is a tree: state_dict(scaler) and training::Checkpoint save it. With
/// DistributedDataParallel every rank has a scaler; as all have the same gradients, all decide the
/// same.
///
///     optim::GradScaler scaler;
///     const Tensor loss = [&] {
///       const Autocast guard(DType::float16);
///       return mse_loss(model(x), y);
///     }();
///     scaler.scale(loss).backward();
///     scaler.unscale_(optimizer);  // only needed if the gradients are used before the step
///     optim::clip_grad_norm_(parameters(model), 1.0);
///     scaler.step(optimizer);
///     scaler.update();
class GradScaler {
 public:
  /// Throws    ArgumentError for an option that is out of range
  explicit GradScaler(const GradScalerOptions& options = {});

  /// Returns loss times the scale, in the loss's dtype; recorded.
  [[nodiscard]] Tensor scale(const Tensor& loss) const;

  /// Divides the gradients of the optimizer's parameters by the scale, in place, and notes whether
  /// all are finite. Waits for the devices.
  ///
  /// Throws    ArgumentError if it was called for this optimizer since the last update();
  ///           DTypeError for a float16 gradient, which would lose what the scale has kept
  template <class O> void unscale_(const O& optimizer) {
    if (options_.enabled) (void)unscale(&optimizer, optimizer.parameters());
  }
  /// Calls optimizer.step() unless a gradient is infinite or NaN. Divides the gradients before,
  /// unless unscale_ has done so. Returns whether the step was made. If optimizer.step() throws, it
  /// can be called again.
  ///
  /// Throws    ArgumentError if it was called for this optimizer since the last update(), and what
  ///           unscale_ and optimizer.step() throw
  template <class O> bool step(O& optimizer) {
    if (options_.enabled && !prepare_step(&optimizer, optimizer.parameters())) return false;
    optimizer.step();
    if (options_.enabled) note_step(&optimizer);
    return true;
  }
  /// Ends an iteration: multiplies the scale by backoff_factor if a gradient was not finite, else,
  /// after growth_interval such iterations, by growth_factor. Or sets it to new_scale.
  ///
  /// Throws    ArgumentError if there was no step or unscale_, and for a new_scale that is not
  ///           finite and above 0
  void update(std::optional<double> new_scale = {});

  /// The scale; 1 if it is not enabled.
  [[nodiscard]] double get_scale() const;
  [[nodiscard]] bool is_enabled() const noexcept { return options_.enabled; }
  [[nodiscard]] const GradScalerOptions& options() const noexcept { return options_; }

 private:
  /// What has happened to the gradients of an optimizer since the last update.
  struct Seen {
    const void* optimizer;
    bool finite;
    bool stepped;
  };
  [[nodiscard]] Seen* seen(const void* optimizer) noexcept;
  Seen& unscale(const void* optimizer, std::span<const Tensor> parameters);
  [[nodiscard]] bool prepare_step(const void* optimizer, std::span<const Tensor> parameters);
  void note_step(const void* optimizer) noexcept;

  GradScalerOptions options_;
  nn::Buffer scale_, growth_tracker_;  // float32 and int64, of one element, on the host
  std::vector<Seen> seen_;

 public:
  // BRAID_FIELDS, with PyTorch's names
  auto braid_fields() -> std::tuple<nn::Buffer&, nn::Buffer&>;
  auto braid_fields() const -> std::tuple<const nn::Buffer&, const nn::Buffer&>;
  static constexpr std::string_view braid_names() { return "scale, growth_tracker"; }
  void braid_owner() const {}
  /// See load_state_dict(scaler, dict).
  LoadReport load_state(std::span<const StateDict::value_type> dict, const LoadOptions& options);
};

}  // namespace braid::optim

namespace braid {

/// Restores the result of state_dict(scaler).
///
/// Throws    as load_state_dict of a model, and ArgumentError for a scale that is not finite and
///           above 0 and for a count below 0; then nothing was changed
inline LoadReport load_state_dict(optim::GradScaler& scaler,
                                  std::span<const StateDict::value_type> dict,
                                  const LoadOptions& options = {}) {
  return scaler.load_state(dict, options);
}

}  // namespace braid
