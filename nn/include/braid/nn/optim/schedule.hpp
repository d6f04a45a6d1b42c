#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include <braid/nn/internal/state_fields.hpp>
#include <braid/nn/optim/curve.hpp>
#include <braid/nn/optim/optimizer.hpp>

// Schedules set the learning rates of an optimizer step by step. A schedule keeps a reference to
// the optimizer, which must outlive it. Its state is a tree: state_dict(schedule) and
// load_state_dict(schedule, dict) save and restore it, also by its base class; restoring also sets
// the optimizer's rates.
namespace braid::optim {

/// Base class of all schedules. Holds the optimizer's initial rates and the current ones.
class Schedule {
 public:
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  virtual ~Schedule();

  /// Returns the number of steps so far.
  [[nodiscard]] std::int64_t steps() const;
  /// Returns the rate that this schedule set last. Throws IndexError if the group does not exist.
  [[nodiscard]] double lr(std::size_t group = 0) const;
  /// Sets the optimizer's rates to lr(…). Called after the state was loaded.
  virtual void restore();

  // How a walk sees a schedule, whose class may be known at run time only: as its fields().
  using braid_erased = void;
  void braid_fill(const tree::detail::Fill& fill, const tree::Name& name);
  /// See load_state_dict(schedule, dict). `signature` names the class in errors.
  LoadReport load_state(std::span<const StateDict::value_type> dict, const LoadOptions& options,
                        const char* signature);

 protected:
  explicit Schedule(Optimizer& optimizer);
  /// Stores the rates here and in the optimizer, and the step count. Throws ArgumentError if a rate
  /// is out of range; then nothing is set.
  void set(const std::vector<double>& rates, std::int64_t steps);
  [[nodiscard]] std::vector<double> base() const { return base_lr_.to_vector<double>(); }
  [[nodiscard]] std::vector<double> now() const { return lr_.to_vector<double>(); }
  [[nodiscard]] Optimizer& optimizer() const noexcept { return *optimizer_; }
  /// The tensors of the state. A schedule that has more than the base class adds them.
  [[nodiscard]] virtual std::vector<detail::StateField> fields();

 private:
  Optimizer* optimizer_;
  nn::Buffer base_lr_, lr_;  // float64, one for each group
  nn::Buffer steps_;         // int64 [1]
};

/// A schedule that follows a curve. The constructor sets the rates of step 0; each step() advances
/// by one. The caller decides whether a step is a batch or an epoch.
///
/// Throws    ArgumentError if an option is out of range
class CurveSchedule : public Schedule {
 public:
  CurveSchedule(Optimizer& optimizer, Curve curve);
  /// Advances by one step and sets the optimizer's rates.
  virtual void step();

 private:
  Curve curve_;
};

/// One class for each formula of curve.hpp:
///
///     optim::CosineSchedule schedule(optimizer, {.steps = epochs * batches});
///     for (std::int64_t i = 0; i < epochs * batches; ++i) {
///       optimizer.step();
///       schedule.step();
///     }
template <class Options> class ScheduleOf final : public CurveSchedule {
 public:
  ScheduleOf(Optimizer& optimizer, const Options& options)
      : CurveSchedule(optimizer, Curve(options)) {}
};
using StepSchedule = ScheduleOf<StepOptions>;
using MultiStepSchedule = ScheduleOf<MultiStepOptions>;
using ExponentialSchedule = ScheduleOf<ExponentialOptions>;
using CosineSchedule = ScheduleOf<CosineOptions>;
using CosineWarmRestartsSchedule = ScheduleOf<CosineWarmRestartsOptions>;
using LinearSchedule = ScheduleOf<LinearOptions>;
using ConstantSchedule = ScheduleOf<ConstantOptions>;
using PolynomialSchedule = ScheduleOf<PolynomialOptions>;
using LambdaSchedule = ScheduleOf<LambdaOptions>;
using SequentialSchedule = ScheduleOf<SequentialOptions>;

/// The one-cycle policy for the learning rate and the momentum. step() throws ArgumentError beyond
/// options.steps. The constructor throws it if cycle_momentum is set and the optimizer has no
/// momentum.
///
///     optim::OneCycleSchedule schedule(optimizer, {.max_lr = 0.1, .steps = epochs * batches});
class OneCycleSchedule final : public CurveSchedule {
 public:
  OneCycleSchedule(Optimizer& optimizer, const OneCycleOptions& options);
  void step() override;
  void restore() override;

 private:
  OneCycleOptions options_;
};

/// Several curves combined: at each step, each curve changes the rate that the one before it
/// produced (ChainedScheduler).
class ChainedSchedule final : public Schedule {
 public:
  ChainedSchedule(Optimizer& optimizer, std::vector<Curve> curves);
  /// Advances by one step and sets the optimizer's rates.
  void step();

 private:
  std::vector<Curve> curves_;
};

/// The options of PlateauSchedule.
struct PlateauOptions {
  bool maximize = false;  ///< mode "max": a larger metric is better
  double factor = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  bool absolute = false;  ///< threshold_mode "abs"
  std::int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;  ///< smaller changes of the rate are skipped
};

/// Multiplies the rates by factor after more than `patience` consecutive steps in which the metric
/// has not improved by more than the threshold (ReduceLROnPlateau).
///
/// Throws    ArgumentError if an option is out of range
///
///     optim::PlateauSchedule schedule(optimizer, {.factor = 0.5, .patience = 3});
///     schedule.step(validation_loss);  // after each epoch
class PlateauSchedule final : public Schedule {
 public:
  PlateauSchedule(Optimizer& optimizer, const PlateauOptions& options = {});
  /// To be called with the metric of each epoch (or of each evaluation).
  void step(double metric);

 private:
  [[nodiscard]] std::vector<detail::StateField> fields() override;

  PlateauOptions options_;
  nn::Buffer best_;    // float64 [1]
  nn::Buffer counts_;  // int64 [2]: steps without progress, steps of cooldown left
};

}  // namespace braid::optim

namespace braid {

/// Restores the result of state_dict(schedule), and sets the optimizer's rates (and momentum)
/// accordingly.
///
/// Throws    as load_state_dict of a model, and ArgumentError for rates that are not finite and at
///           least 0, for counts below 0 and for a best metric that is NaN. Then nothing was
///           changed
template <std::derived_from<optim::Schedule> S>
LoadReport load_state_dict(S& schedule, std::span<const StateDict::value_type> dict,
                           const LoadOptions& options = {}) {
  return schedule.load_state(dict, options, detail::signature<S>());
}

}  // namespace braid
