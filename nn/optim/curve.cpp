#include <algorithm>
#include <cmath>
#include <numbers>

#include <braid/core/error.hpp>
#include <braid/nn/optim/curve.hpp>

namespace braid::optim {
namespace {

void check_steps(const char* name, const char* what, std::int64_t steps) {
  if (steps < 1) throw ArgumentError(str(name, ": expected ", what, " >= 1, got ", steps));
}
void check_rate(const char* name, const char* what, double value) {
  if (!(value >= 0) || std::isinf(value))
    throw ArgumentError(str(name, ": expected ", what, " >= 0, got ", value));
}
void check_increasing(const char* name, const std::vector<std::int64_t>& milestones) {
  for (std::size_t i = 1; i < milestones.size(); ++i)
    if (milestones[i] < milestones[i - 1])
      throw ArgumentError(str(name, ": expected increasing milestones, got ", milestones[i],
                              " after ", milestones[i - 1]));
}

double cosine(double base, double min_lr, double part) {
  return min_lr + (base - min_lr) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

/// Interpolates from `first` to `last` as `part` goes from 0 to 1. In the step after the last one,
/// `part` is above 1: a line stays at `last`, because beyond it the rate would be negative.
double anneal(const OneCycleOptions& o, double first, double last, double part) {
  return o.linear ? (last - first) * std::min(part, 1.0) + first
                  : last + (first - last) / 2 * (1 + std::cos(std::numbers::pi * part));
}

/// The value at step t of a cycle: low … high … low (… end).
double one_cycle(const OneCycleOptions& o, std::int64_t t, double low, double high, double end) {
  const double total = static_cast<double>(o.steps), step = static_cast<double>(t),
               up = o.pct_start * total - 1, last = total - 1;
  if (step <= up) return anneal(o, low, high, step / up);
  if (!o.three_phase) return anneal(o, high, end, (step - up) / (last - up));
  const double down = 2 * o.pct_start * total - 2;
  if (step <= down) return anneal(o, high, low, (step - up) / (down - up));
  return anneal(o, low, end, (step - down) / (last - down));
}

void check(const OneCycleOptions& o) {
  check_rate("OneCycle", "max_lr", o.max_lr);
  check_steps("OneCycle", "steps", o.steps);
  if (!(o.pct_start >= 0 && o.pct_start <= 1))
    throw ArgumentError(str("OneCycle: expected 0 <= pct_start <= 1, got ", o.pct_start));
  if (!(o.div_factor > 0))
    throw ArgumentError(str("OneCycle: expected div_factor > 0, got ", o.div_factor));
  if (!(o.final_div_factor > 0))
    throw ArgumentError(str("OneCycle: expected final_div_factor > 0, got ", o.final_div_factor));
  for (const double momentum : {o.base_momentum, o.max_momentum})
    if (!(momentum >= 0 && momentum < 1))
      throw ArgumentError(str("OneCycle: expected 0 <= momentum < 1, got ", momentum));
}

}  // namespace

double Curve::next(double lr, double base, std::int64_t t) const {
  if (t == 0) return at_(lr, 0);
  if (next_) return next_(lr, base, t);
  const double before = at_(base, t - 1), after = at_(base, t);
  if (before == after) return lr;
  return before == 0 ? after : lr * (after / before);
}

Curve::Curve(const StepOptions& o) {
  check_steps("Step", "step_size", o.step_size);
  check_rate("Step", "gamma", o.gamma);
  at_ = [o](double base, std::int64_t t) {
    return base * std::pow(o.gamma, static_cast<double>(t / o.step_size));
  };
}

Curve::Curve(const MultiStepOptions& o) {
  check_increasing("MultiStep", o.milestones);
  check_rate("MultiStep", "gamma", o.gamma);
  at_ = [o](double base, std::int64_t t) {
    const auto passed =
        std::upper_bound(o.milestones.begin(), o.milestones.end(), t) - o.milestones.begin();
    return base * std::pow(o.gamma, static_cast<double>(passed));
  };
}

Curve::Curve(const ExponentialOptions& o) {
  check_rate("Exponential", "gamma", o.gamma);
  at_ = [o](double base, std::int64_t t) {
    return base * std::pow(o.gamma, static_cast<double>(t));
  };
}

Curve::Curve(const CosineOptions& o) {
  check_steps("Cosine", "steps", o.steps);
  check_rate("Cosine", "min_lr", o.min_lr);
  const auto part = [o](std::int64_t t) {
    return static_cast<double>(t) / static_cast<double>(o.steps);
  };
  at_ = [o, part](double base, std::int64_t t) { return cosine(base, o.min_lr, part(t)); };
  next_ = [o, part](double lr, double base, std::int64_t t) {
    // At the lowest point no factor leads up again, because the distance from min_lr is 0.
    if ((t - 1 - o.steps) % (2 * o.steps) == 0)
      return lr + (base - o.min_lr) *
                      (1 - std::cos(std::numbers::pi / static_cast<double>(o.steps))) / 2;
    return (1 + std::cos(std::numbers::pi * part(t))) /
               (1 + std::cos(std::numbers::pi * part(t - 1))) * (lr - o.min_lr) +
           o.min_lr;
  };
}

Curve::Curve(const CosineWarmRestartsOptions& o) {
  check_steps("CosineWarmRestarts", "steps", o.steps);
  check_steps("CosineWarmRestarts", "factor", o.factor);
  check_rate("CosineWarmRestarts", "min_lr", o.min_lr);
  at_ = [o](double base, std::int64_t t) {
    std::int64_t period = o.steps, since = t;
    if (o.factor == 1) since %= period;
    for (; since >= period; period *= o.factor) since -= period;
    return cosine(base, o.min_lr, static_cast<double>(since) / static_cast<double>(period));
  };
  // not relative to the last rate, as in PyTorch
  next_ = [at = at_](double, double base, std::int64_t t) { return at(base, t); };
}

Curve::Curve(const LinearOptions& o) {
  check_steps("Linear", "steps", o.steps);
  check_rate("Linear", "start_factor", o.start_factor);
  check_rate("Linear", "end_factor", o.end_factor);
  at_ = [o](double base, std::int64_t t) {
    return base * (o.start_factor + (o.end_factor - o.start_factor) *
                                        static_cast<double>(std::min(t, o.steps)) /
                                        static_cast<double>(o.steps));
  };
}

Curve::Curve(const ConstantOptions& o) {
  if (o.steps < 0) throw ArgumentError(str("Constant: expected steps >= 0, got ", o.steps));
  check_rate("Constant", "factor", o.factor);
  at_ = [o](double base, std::int64_t t) { return t < o.steps ? base * o.factor : base; };
}

Curve::Curve(const PolynomialOptions& o) {
  check_steps("Polynomial", "steps", o.steps);
  check_rate("Polynomial", "power", o.power);
  at_ = [o](double base, std::int64_t t) {
    return base *
           std::pow(1 - static_cast<double>(std::min(t, o.steps)) / static_cast<double>(o.steps),
                    o.power);
  };
}

Curve::Curve(const LambdaOptions& o) {
  if (!o.factor) throw ArgumentError("Lambda: expected a function, got none");
  at_ = [o](double base, std::int64_t t) { return base * o.factor(t); };
}

Curve::Curve(const OneCycleOptions& o) {
  check(o);
  at_ = [o](double, std::int64_t t) {
    if (t > o.steps)
      throw ArgumentError(str("OneCycle: expected at most ", o.steps, " steps, got ", t));
    const double low = o.max_lr / o.div_factor;
    return one_cycle(o, t, low, o.max_lr, low / o.final_div_factor);
  };
  next_ = [at = at_](double, double base, std::int64_t t) { return at(base, t); };
}

double one_cycle_momentum(const OneCycleOptions& o, std::int64_t t) {
  return one_cycle(o, t, o.max_momentum, o.base_momentum, o.max_momentum);
}

Curve::Curve(const SequentialOptions& o) {
  if (o.parts.empty()) throw ArgumentError("Sequential: expected at least one part, got 0");
  if (o.milestones.size() + 1 != o.parts.size())
    throw ArgumentError(str("Sequential: expected one milestone fewer than parts, got ",
                            o.milestones.size(), " for ", o.parts.size(), " parts"));
  check_increasing("Sequential", o.milestones);
  at_ = [o](double base, std::int64_t t) {
    const auto part = static_cast<std::size_t>(
        std::upper_bound(o.milestones.begin(), o.milestones.end(), t) - o.milestones.begin());
    return o.parts[part].at(base, part == 0 ? t : t - o.milestones[part - 1]);
  };
}

}  // namespace braid::optim
