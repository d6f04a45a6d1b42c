#include <algorithm>
#include <cmath>
#include <limits>

#include <braid/core/error.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/nn/optim/schedule.hpp>

namespace braid::optim {
namespace {

nn::Buffer numbers(const std::vector<double>& list) {
  return nn::Buffer(tensor(list, {.device = Device(), .dtype = DType::float64}));
}
nn::Buffer counts(const std::vector<std::int64_t>& list) {
  return nn::Buffer(tensor(list, {.device = Device()}));
}
/// Returns the host memory of a schedule's state. If the state tree was moved to another device,
/// moves the buffer back first.
template <class T> T* host(nn::Buffer& buffer) {
  if (buffer.device() != Device()) buffer = nn::Buffer(buffer.to(Device()));
  return buffer.data<T>();
}

void check_not_recorded() {
  ::braid::detail::StepCapture::refuse(
      "schedule", "step() between the calls of a captured step, got one inside");
}

}  // namespace

Schedule::Schedule(Optimizer& optimizer) : optimizer_(&optimizer) {
  std::vector<double> rates;
  for (std::size_t g = 0; g < optimizer.groups(); ++g) rates.push_back(optimizer.lr(g));
  base_lr_ = numbers(rates);
  lr_ = numbers(rates);
  steps_ = counts({0});
}
Schedule::~Schedule() = default;

std::vector<detail::StateField> Schedule::fields() {
  return {{"base_lr", &base_lr_, &detail::is_rate, detail::kRates},
          {"lr", &lr_, &detail::is_rate, detail::kRates},
          {"steps", &steps_, &detail::is_count, detail::kCounts}};
}

void Schedule::braid_fill(const tree::detail::Fill& fill, const tree::Name& name) {
  static constexpr tree::NodeType type{
      tree::Form::structure, ::braid::detail::signature<Schedule>(), nullptr, nullptr, nullptr};
  const std::vector<detail::StateField> list = fields();
  const auto self = static_cast<std::int32_t>(fill.flat.nodes.size());
  fill.flat.nodes.push_back(
      {&type, this, name, fill.parent, static_cast<std::int64_t>(list.size())});
  for (const detail::StateField& field : list)
    fill.flat.leaves.push_back({field.tensor, tree::Kind::buffer, tree::Name(field.name), self});
}

LoadReport Schedule::load_state(std::span<const StateDict::value_type> dict,
                                const LoadOptions& options, const char* signature) {
  LoadReport report = detail::load_fields(fields(), dict, options, signature);
  restore();
  return report;
}

std::int64_t Schedule::steps() const { return steps_.item<std::int64_t>(); }

double Schedule::lr(std::size_t group) const {
  const std::vector<double> rates = now();
  if (group >= rates.size())
    throw IndexError(str("schedule: lr: expected a group below ", rates.size(), ", got ", group));
  return rates[group];
}

void Schedule::set(const std::vector<double>& rates, std::int64_t steps) {
  for (const double rate : rates)
    if (!(rate >= 0) || std::isinf(rate))
      throw ArgumentError(
          str("schedule: expected learning rates >= 0, got ", rate, " at step ", steps));
  double* kept = host<double>(lr_);
  for (std::size_t g = 0; g < rates.size(); ++g) {
    kept[g] = rates[g];
    optimizer_->set_lr(g, rates[g]);
  }
  *host<std::int64_t>(steps_) = steps;
  lr_.storage()->bump_version();
  steps_.storage()->bump_version();
}

void Schedule::restore() { set(now(), steps()); }

CurveSchedule::CurveSchedule(Optimizer& optimizer, Curve curve)
    : Schedule(optimizer), curve_(std::move(curve)) {
  std::vector<double> rates = base();
  for (double& rate : rates) rate = curve_.at(rate, 0);
  set(rates, 0);
}

void CurveSchedule::step() {
  check_not_recorded();
  std::vector<double> rates = base();
  const std::int64_t t = steps() + 1;
  for (double& rate : rates) rate = curve_.at(rate, t);
  set(rates, t);
}

namespace {
/// Throws if the optimizer has no momentum, before any rate is set.
Optimizer& with_momentum(Optimizer& optimizer, const OneCycleOptions& o) {
  for (std::size_t g = 0; o.cycle_momentum && g < optimizer.groups(); ++g)
    (void)optimizer.momentum(g);
  return optimizer;
}
void set_momentum(Optimizer& optimizer, const OneCycleOptions& o, std::int64_t t) {
  for (std::size_t g = 0; o.cycle_momentum && g < optimizer.groups(); ++g)
    optimizer.set_momentum(g, one_cycle_momentum(o, t));
}
}  // namespace

OneCycleSchedule::OneCycleSchedule(Optimizer& optimizer, const OneCycleOptions& options)
    : CurveSchedule(with_momentum(optimizer, options), Curve(options)), options_(options) {
  set_momentum(optimizer, options_, 0);
}
void OneCycleSchedule::step() {
  CurveSchedule::step();
  set_momentum(optimizer(), options_, steps());
}
void OneCycleSchedule::restore() {
  CurveSchedule::restore();
  set_momentum(optimizer(), options_, steps());
}

ChainedSchedule::ChainedSchedule(Optimizer& optimizer, std::vector<Curve> curves)
    : Schedule(optimizer), curves_(std::move(curves)) {
  if (curves_.empty()) throw ArgumentError("Chained: expected at least one curve, got 0");
  std::vector<double> rates = base();
  for (double& rate : rates)
    for (const Curve& curve : curves_) rate = curve.next(rate, rate, 0);
  set(rates, 0);
}
void ChainedSchedule::step() {
  check_not_recorded();
  const std::vector<double> from = base();
  std::vector<double> rates = now();
  const std::int64_t t = steps() + 1;
  for (std::size_t g = 0; g < rates.size(); ++g)
    for (const Curve& curve : curves_) rates[g] = curve.next(rates[g], from[g], t);
  set(rates, t);
}

PlateauSchedule::PlateauSchedule(Optimizer& optimizer, const PlateauOptions& options)
    : Schedule(optimizer), options_(options) {
  const auto check = [](bool good, const char* what, double value) {
    if (!good) throw ArgumentError(str("Plateau: expected ", what, ", got ", value));
  };
  check(options.factor >= 0 && options.factor < 1, "0 <= factor < 1", options.factor);
  check(options.patience >= 0, "patience >= 0", static_cast<double>(options.patience));
  check(options.cooldown >= 0, "cooldown >= 0", static_cast<double>(options.cooldown));
  check(options.threshold >= 0 && !std::isinf(options.threshold), "threshold >= 0",
        options.threshold);
  check(options.min_lr >= 0 && !std::isinf(options.min_lr), "min_lr >= 0", options.min_lr);
  check(options.eps >= 0, "eps >= 0", options.eps);
  best_ = numbers({options.maximize ? -std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::infinity()});
  counts_ = counts({0, 0});
}

std::vector<detail::StateField> PlateauSchedule::fields() {
  std::vector<detail::StateField> list = Schedule::fields();
  list.push_back({"best", &best_, [](double v) { return !std::isnan(v); }, "a number"});
  list.push_back({"counts", &counts_, &detail::is_count, detail::kCounts});
  return list;
}

void PlateauSchedule::step(double metric) {
  check_not_recorded();
  double& best = *host<double>(best_);
  std::int64_t* const count = host<std::int64_t>(counts_);
  std::int64_t &bad = count[0], &cooldown = count[1];
  const double edge = options_.threshold * (options_.absolute   ? 1
                                            : options_.maximize ? best
                                                                : -best);
  const double needed =
      options_.absolute ? (options_.maximize ? best + edge : best - edge) : best + edge;
  const bool better = std::isinf(best)    ? (options_.maximize ? metric > best : metric < best)
                      : options_.maximize ? metric > needed
                                          : metric < needed;
  if (better) {
    best = metric;
    bad = 0;
  } else {
    ++bad;
  }
  if (cooldown > 0) {
    --cooldown;
    bad = 0;
  }
  std::vector<double> rates = now();
  for (std::size_t g = 0; g < rates.size(); ++g) rates[g] = optimizer().lr(g);
  if (bad > options_.patience) {
    for (double& rate : rates) {
      const double lower = std::max(rate * options_.factor, options_.min_lr);
      if (rate - lower > options_.eps) rate = lower;
    }
    cooldown = options_.cooldown;
    bad = 0;
  }
  set(rates, steps() + 1);
  best_.storage()->bump_version();
  counts_.storage()->bump_version();
}

}  // namespace braid::optim
