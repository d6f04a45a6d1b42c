#include "transfer/fit.hpp"

#include <algorithm>
#include <cstdio>
#include <span>

namespace bench::transfer {
namespace {

using braid::parallel::CostLine;
using braid::parallel::CostPoint;

double error_of(const CostLine& line, std::span<const CostPoint> points) {
  double sum = 0;
  for (const CostPoint& p : points) {
    const double off = line(p.amount) / p.seconds - 1;
    sum += off * off;
  }
  return sum;
}

}  // namespace

Curve fit_curve(const std::vector<CostPoint>& points) {
  constexpr std::size_t kLeast = 3;  // the fewest points for a line; two would always fit
  const std::span<const CostPoint> all(points);
  Curve curve;
  curve.line = curve.small = curve.large = braid::parallel::fit_cost_line(all);
  curve.misfit = curve.bent_misfit = worst_misfit(curve.line, all);
  double best = error_of(curve.line, all) / 2;
  for (std::size_t k = kLeast; k + kLeast <= points.size(); ++k) {
    const CostLine small = braid::parallel::fit_cost_line(all.first(k)),
                   large = braid::parallel::fit_cost_line(all.subspan(k));
    const double error = error_of(small, all.first(k)) + error_of(large, all.subspan(k));
    if (error >= best) continue;
    best = error;
    curve.small = small, curve.large = large, curve.bend = points[k].amount;
    curve.bent_misfit =
        std::max(worst_misfit(small, all.first(k)), worst_misfit(large, all.subspan(k)));
  }
  return curve;
}

std::string text_of(const CostLine& line) {
  char text[80];
  if (line.slope > 0)
    std::snprintf(text, sizeof text, "%.3g us + bytes / %.3g GB/s", line.latency * 1e6,
                  1e-9 / line.slope);
  else std::snprintf(text, sizeof text, "%.3g us for any size", line.latency * 1e6);
  return text;
}

std::string text_of_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KB", "MB", "GB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", bytes, kUnits[unit]);
  return text;
}

}  // namespace bench::transfer
