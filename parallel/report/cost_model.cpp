#include <braid/parallel/cost_model.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <braid/core/error.hpp>

#include "report/phases.hpp"

namespace braid::parallel {
namespace {

/// A measured time, to be fitted as a · u + b · v.
struct Point {
  double u, v, seconds;
};

struct Two {
  double a = 0, b = 0;
};

/// The sum of squared relative errors, so that short steps count as much as long ones. Ignores
/// times of 0, which need no explanation.
double error_of(std::span<const Point> points, const Two& fit) {
  double sum = 0;
  for (const Point& p : points) {
    if (p.seconds <= 0) continue;
    const double off = (fit.a * p.u + fit.b * p.v) / p.seconds - 1;
    sum += off * off;
  }
  return sum;
}

/// Least squares with a, b >= 0. If the points lie on one ray (a single size), everything goes to
/// b, or to a if v is 0 everywhere.
Two fit_two(std::span<const Point> points) {
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (const Point& p : points) {
    if (p.seconds <= 0) continue;
    const double u = p.u / p.seconds, v = p.v / p.seconds;
    uu += u * u, uv += u * v, vv += v * v, u1 += u, v1 += v;
  }
  const Two only_a{uu > 0 ? u1 / uu : 0, 0}, only_b{0, vv > 0 ? v1 / vv : 0};
  if (vv <= 0) return only_a;
  if (uu <= 0) return only_b;
  constexpr double kOneRay = 1e-9;
  const double determinant = uu * vv - uv * uv;
  if (determinant <= kOneRay * uu * vv) return only_b;
  const Two both{(u1 * vv - v1 * uv) / determinant, (v1 * uu - u1 * uv) / determinant};
  if (both.a >= 0 && both.b >= 0) return both;
  return error_of(points, only_a) < error_of(points, only_b) ? only_a : only_b;
}

CostLine line(std::span<const Point> points) {
  const Two fit = fit_two(points);
  return {fit.a, fit.b};
}

/// Fits c(b): a line; or, if several small sizes take the same time (launches cost more than
/// arithmetic), a floor and a line through the rest.
std::pair<CostLine, double> compute_curve(std::vector<Point> points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.v < b.v; });
  const CostLine plain = line(points);
  // A floor must halve the error to be used.
  double best = error_of(points, {plain.latency, plain.slope}) / 2;
  std::pair<CostLine, double> curve{plain, 0.0};
  for (std::size_t k = 2; k + 2 <= points.size(); ++k) {
    if (points[k - 1].v == points[k].v || points[0].v == points[k - 1].v) continue;
    double floor = 0;
    for (std::size_t i = 0; i < k; ++i) floor += points[i].seconds / static_cast<double>(k);
    const CostLine rest = line(std::span(points).subspan(k));
    double error = 0;
    for (const Point& p : points) {
      const double off = std::max(floor, rest(p.v)) / p.seconds - 1;
      error += off * off;
    }
    if (error < best) best = error, curve = {rest, floor};
  }
  return curve;
}

std::int64_t rows_of(std::int64_t batch, int devices) { return (batch + devices - 1) / devices; }

}  // namespace

CostLine fit_cost_line(std::span<const CostPoint> points) {
  std::vector<Point> measured;
  measured.reserve(points.size());
  for (const CostPoint& p : points) measured.push_back({1, p.amount, p.seconds});
  return line(measured);
}

double worst_misfit(const CostLine& line, std::span<const CostPoint> points) noexcept {
  double worst = 0;
  for (const CostPoint& p : points)
    if (p.seconds > 0) worst = std::max(worst, std::abs(line(p.amount) / p.seconds - 1));
  return worst;
}

CostModel CostModel::fit(std::span<const CostSample> samples, Collective collective) {
  if (samples.empty())
    throw ArgumentError("CostModel::fit: expected at least one sample, got none");
  CostModel model;
  model.collective_ = collective;
  std::vector<Point> compute, scatter, replicate, gather, reduce, other, group;
  std::vector<double> optimizer;
  double several = 0;
  for (const CostSample& s : samples) {
    model.check(1, s.batch, s.slowdown);
    if (s.devices < 1)
      throw ArgumentError(
          str("CostModel::fit: expected samples of at least one device, got ", s.devices));
    compute.push_back(
        {1, static_cast<double>(rows_of(s.batch, s.devices)), s.seconds.compute / s.slowdown});
    optimizer.push_back(s.seconds.optimizer);
    if (s.devices == 1) other.push_back({1, static_cast<double>(s.batch), s.seconds.idle});
    if (s.devices == 1) continue;
    ++several;
    const double others = s.devices - 1, latencies = collective == Collective::star ? others : 1;
    // The part of the bytes that one link carries.
    const double portion = collective == Collective::star ? 1 : 1 / others;
    scatter.push_back({1, s.scatter_bytes, s.seconds.scatter});
    gather.push_back({1, s.gather_bytes, s.seconds.gather});
    replicate.push_back({latencies, s.replicate_bytes * portion, s.seconds.replicate});
    reduce.push_back({latencies, s.reduce_bytes * portion, s.seconds.reduce});
    model.scatter_per_row_ += s.scatter_bytes / (static_cast<double>(s.batch) * others / s.devices);
    model.gather_per_row_ += s.gather_bytes / static_cast<double>(s.batch);
    model.replicate_per_device_ += s.replicate_bytes / others;
    model.reduce_per_device_ += s.reduce_bytes / others;
  }
  model.optimizer_ = median(std::move(optimizer));  // the same work in all samples
  std::erase_if(compute, [](const Point& p) { return p.seconds <= 0; });
  std::tie(model.compute_, model.floor_) = compute_curve(std::move(compute));
  if (several > 0) {
    model.several_ = true;
    for (double* mean : {&model.scatter_per_row_, &model.gather_per_row_,
                         &model.replicate_per_device_, &model.reduce_per_device_})
      *mean /= several;
    model.scatter_ = line(scatter);
    model.gather_ = line(gather);
    model.replicate_ = line(replicate);
    model.reduce_ = line(reduce);
  }
  // The program's own work comes from runs on one device if there are any. What a group adds is
  // fitted separately.
  if (other.empty())
    for (const CostSample& s : samples)
      other.push_back({1, static_cast<double>(s.batch), s.seconds.idle});
  model.other_ = line(other);
  for (const CostSample& s : samples)
    if (s.devices > 1)
      group.push_back({1, static_cast<double>(s.devices - 1),
                       std::max(0.0, s.seconds.idle - model.other_(static_cast<double>(s.batch)))});
  model.group_ = line(group);
  return model;
}

void CostModel::check(int devices, std::int64_t batch, double slowdown) const {
  if (devices < 1 || batch < 1)
    throw ArgumentError(
        str("CostModel: expected at least one device and one row, got ", devices, " and ", batch));
  if (!(slowdown >= 1) || !std::isfinite(slowdown))
    throw ArgumentError(str("CostModel: expected a slowdown of at least 1, got ", slowdown));
  if (devices > 1 && !several_)
    throw ArgumentError(
        str("CostModel: expected a fit to runs of several devices, got one to runs of one device; "
            "asked for ",
            devices));
}

double CostModel::compute_of(double rows) const noexcept {
  return std::max(floor_, compute_(rows));
}

PhaseSeconds CostModel::predict(int devices, std::int64_t batch, double slowdown) const {
  check(devices, batch, slowdown);
  const auto rows = static_cast<double>(batch);
  PhaseSeconds t;
  t.compute =
      compute_of(static_cast<double>(rows_of(batch, devices))) * (devices == 1 ? 1 : slowdown);
  t.optimizer = optimizer_;
  t.idle = other_(rows);
  if (devices == 1) return t;
  const double others = devices - 1, times = collective_ == Collective::star ? others : 1;
  t.scatter = scatter_(scatter_per_row_ * rows * others / devices);
  t.gather = gather_(gather_per_row_ * rows);
  t.replicate = times * replicate_(replicate_per_device_);
  t.reduce = times * reduce_(reduce_per_device_);
  t.idle += group_(others);
  return t;
}

std::optional<std::int64_t> CostModel::break_even(int devices, double slowdown) const {
  check(devices, 1, slowdown);
  if (devices == 1) return 1;
  const auto pays = [&](std::int64_t each) {
    return predict(devices, each * devices, slowdown).total() < predict(1, each * devices).total();
  };
  constexpr int kDoublings = 40;
  const std::int64_t most = (std::int64_t{1} << kDoublings) / devices;  // rows per device
  std::int64_t fails = 0, good = most;
  if (!pays(most)) return {};
  for (std::int64_t each = 1; each < most; each *= 2)
    if (!pays(each)) fails = each;
  while (good - fails > 1) {
    const std::int64_t middle = fails + (good - fails) / 2;
    (pays(middle) ? good : fails) = middle;
  }
  return good * devices;
}

namespace {

std::string_view largest(const PhaseSeconds& s, bool compute) noexcept {
  const std::array<std::pair<double, std::string_view>, 7> terms = {
      {{compute ? s.compute : -1, "compute"},
       {s.reduce, "reduce"},
       {s.replicate, "replicate"},
       {s.gather, "gather"},
       {s.scatter, "scatter"},
       {s.optimizer, "optimizer"},
       {s.idle, "other"}}};
  return std::max_element(terms.begin(), terms.end(),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

}  // namespace

std::string_view dominating_term(const PhaseSeconds& seconds) noexcept {
  return largest(seconds, true);
}
std::string_view dominating_cost(const PhaseSeconds& seconds) noexcept {
  return largest(seconds, false);
}

}  // namespace braid::parallel
