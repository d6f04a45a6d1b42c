#pragma once
#include <cstdint>
#include <functional>
#include <vector>

// Learning rate curves: formulas of the learning rate over the steps of a training run, each with
// its options. Schedules apply and combine them. Step 0 is the start; `base` is the rate with which
// the optimizer was created. PyTorch's names are in parentheses.
namespace braid::optim {

/// base * gamma^⌊t / step_size⌋ (StepLR).
struct StepOptions {
  std::int64_t step_size = 1;
  double gamma = 0.1;
};
/// base * gamma^(number of milestones <= t) (MultiStepLR).
struct MultiStepOptions {
  std::vector<std::int64_t> milestones;  ///< increasing
  double gamma = 0.1;
};
/// base * gamma^t (ExponentialLR).
struct ExponentialOptions {
  double gamma = 0.9;
};
/// min_lr + (base - min_lr) (1 + cos(π t / steps)) / 2 (CosineAnnealingLR with T_max and eta_min).
/// The rate rises again after `steps`. Loshchilov & Hutter 2017, arXiv:1608.03983.
struct CosineOptions {
  std::int64_t steps = 0;
  double min_lr = 0;
};
/// The cosine curve, restarted after `steps` steps, then after steps * factor more steps, and so on
/// (CosineAnnealingWarmRestarts with T_0, T_mult, eta_min).
struct CosineWarmRestartsOptions {
  std::int64_t steps = 0;
  std::int64_t factor = 1;
  double min_lr = 0;
};
/// base * factor, where factor changes linearly from start_factor to end_factor in `steps` steps
/// and then stays constant (LinearLR, total_iters): a warm-up.
struct LinearOptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t steps = 5;
};
/// base * factor for `steps` steps, then base (ConstantLR, total_iters).
struct ConstantOptions {
  double factor = 1.0 / 3;
  std::int64_t steps = 5;
};
/// base * (1 - t / steps)^power until step `steps`, then 0 (PolynomialLR, total_iters).
struct PolynomialOptions {
  std::int64_t steps = 5;
  double power = 1;
};
/// base * factor(t) (LambdaLR, with one function for all groups).
struct LambdaOptions {
  std::function<double(std::int64_t t)> factor = {};
};

/// The one-cycle policy (OneCycleLR, total_steps): the rate rises from max_lr / div_factor to
/// max_lr during the first pct_start of the steps, then falls to max_lr / div_factor /
/// final_div_factor. The momentum (beta1 of Adam) moves in the opposite direction. With three_phase
/// the rate first falls back to its start, in as many steps as it rose, and then to the end value.
/// At most `steps` steps. `base` is not used. Smith & Topin 2018, arXiv:1708.07120.
struct OneCycleOptions {
  double max_lr = 0;
  std::int64_t steps = 0;
  double pct_start = 0.3;
  bool linear = false;  ///< linear instead of half a cosine
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};

struct SequentialOptions;

/// One of the formulas above, with checked options. The constructor throws ArgumentError if an
/// option is out of range.
class Curve {
 public:
  Curve(const StepOptions& o);
  Curve(const MultiStepOptions& o);
  Curve(const ExponentialOptions& o);
  Curve(const CosineOptions& o);
  Curve(const CosineWarmRestartsOptions& o);
  Curve(const LinearOptions& o);
  Curve(const ConstantOptions& o);
  Curve(const PolynomialOptions& o);
  Curve(const LambdaOptions& o);
  Curve(const OneCycleOptions& o);
  Curve(const SequentialOptions& o);

  /// Returns the rate at step t >= 0.
  [[nodiscard]] double at(double base, std::int64_t t) const { return at_(base, t); }
  /// Returns the rate at step t, given the rate `lr` at step t - 1, which other curves may have
  /// changed. Most curves return lr · at(base, t) / at(base, t - 1). Cosine scales lr - min_lr
  /// instead of lr. CosineWarmRestarts and OneCycle ignore lr and return at(base, t).
  [[nodiscard]] double next(double lr, double base, std::int64_t t) const;

 private:
  std::function<double(double base, std::int64_t t)> at_;
  // set for curves where next() is not lr times at(t) / at(t - 1)
  std::function<double(double lr, double base, std::int64_t t)> next_ = {};
};

/// parts[0] before step milestones[0], then parts[1], which starts at its own step 0, and so on
/// (SequentialLR).
struct SequentialOptions {
  std::vector<Curve> parts;
  std::vector<std::int64_t> milestones;  ///< increasing, one fewer than parts
};

/// Returns the momentum of OneCycle at step t.
[[nodiscard]] double one_cycle_momentum(const OneCycleOptions& o, std::int64_t t);

}  // namespace braid::optim
