#pragma once
#include <cstdint>
#include <functional>
#include <vector>

// How a learning rate runs over the steps of a training: formulas, each with its options, which
// schedules apply and combine. Step 0 is the start, `base` the rate that the optimizer was made
// with. PyTorch's names are beside ours.
namespace braid::optim {

/// base * gamma^⌊t / step_size⌋ (StepLR).
struct StepOptions {
  std::int64_t step_size = 1;
  double gamma = 0.1;
};
/// base * gamma^(how many milestones are <= t) (MultiStepLR).
struct MultiStepOptions {
  std::vector<std::int64_t> milestones;  ///< increasing
  double gamma = 0.1;
};
/// base * gamma^t (ExponentialLR).
struct ExponentialOptions {
  double gamma = 0.9;
};
/// min_lr + (base - min_lr) (1 + cos(π t / steps)) / 2 (CosineAnnealingLR, T_max and eta_min); goes
/// up again after `steps`. Loshchilov & Hutter 2017, arXiv:1608.03983.
struct CosineOptions {
  std::int64_t steps = 0;
  double min_lr = 0;
};
/// The same, started anew after `steps`, then steps * factor, … (CosineAnnealingWarmRestarts, T_0,
/// T_mult, eta_min).
struct CosineWarmRestartsOptions {
  std::int64_t steps = 0;
  std::int64_t factor = 1;
  double min_lr = 0;
};
/// base * factor, factor going evenly from start_factor to end_factor in `steps` and staying
/// (LinearLR, total_iters): a warm-up.
struct LinearOptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t steps = 5;
};
/// base * factor for `steps`, then base (ConstantLR, total_iters).
struct ConstantOptions {
  double factor = 1.0 / 3;
  std::int64_t steps = 5;
};
/// base * (1 - t / steps)^power, then 0 (PolynomialLR, total_iters).
struct PolynomialOptions {
  std::int64_t steps = 5;
  double power = 1;
};
/// base * factor(t) (LambdaLR, with one function for all groups).
struct LambdaOptions {
  std::function<double(std::int64_t t)> factor = {};
};

/// From max_lr / div_factor up to max_lr at pct_start of the steps, then down to max_lr /
/// div_factor / final_div_factor; the momentum (beta1 of Adam) goes the opposite way. three_phase:
/// first down to where it began, as symmetrically, then on. At most `steps` steps (OneCycleLR,
/// total_steps). `base` plays no part. Smith & Topin 2018, arXiv:1708.07120.
struct OneCycleOptions {
  double max_lr = 0;
  std::int64_t steps = 0;
  double pct_start = 0.3;
  bool linear = false;  ///< instead of the half cosine
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};

struct SequentialOptions;

/// A formula of those above, checked: ArgumentError for options out of range.
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

  /// The rate at step t >= 0.
  [[nodiscard]] double at(double base, std::int64_t t) const { return at_(base, t); }
  /// The rate at step t for a rate that was `lr`, perhaps also moved by others, at step t - 1: at()
  /// changes by that factor, cosines about their lowest rate.
  [[nodiscard]] double next(double lr, double base, std::int64_t t) const;

 private:
  std::function<double(double base, std::int64_t t)> at_;
  // where it is not the factor
  std::function<double(double lr, double base, std::int64_t t)> next_ = {};
};

/// parts[0] up to milestones[0], from there on parts[1] from its own step 0, … (SequentialLR).
struct SequentialOptions {
  std::vector<Curve> parts;
  std::vector<std::int64_t> milestones;  ///< increasing, one fewer than parts
};

/// The momentum of OneCycle at step t.
[[nodiscard]] double one_cycle_momentum(const OneCycleOptions& o, std::int64_t t);

}  // namespace braid::optim
