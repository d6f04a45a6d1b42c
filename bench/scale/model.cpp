#include "scale/model.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace bench::scale {
namespace {

double messages(int ranks, Algorithm algorithm) {
  if (algorithm == Algorithm::ring) return 2.0 * (ranks - 1);
  int steps = 0;
  while ((1 << steps) < ranks) ++steps;
  return 2.0 * steps;
}

/// The bytes that a rank sends, as a multiple of the size.
double traffic(int ranks) { return 2.0 * (ranks - 1) / ranks; }

}  // namespace

const char* name_of(Algorithm algorithm) {
  return algorithm == Algorithm::ring ? "ring" : "halving and doubling";
}

double all_reduce_seconds(double bytes, int ranks, const Link& link, Algorithm algorithm,
                          double reduce) {
  if (ranks == 1) return 0;
  const double adding = reduce > 0 ? traffic(ranks) / 2 * bytes / reduce : 0;
  return messages(ranks, algorithm) * link.alpha + traffic(ranks) * bytes / link.beta + adding;
}

Link fit(const std::vector<Sample>& samples, int ranks, Algorithm algorithm) {
  // seconds = a · x + b · y with x = messages, y = traffic · bytes; each row divided by seconds
  double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
  for (const Sample& s : samples) {
    const double x = messages(ranks, algorithm) / s.seconds,
                 y = traffic(ranks) * s.bytes / s.seconds;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x1 += x;
    y1 += y;
  }
  const double determinant = xx * yy - xy * xy;
  if (samples.size() < 2 || !(determinant > 1e-12 * xx * yy))
    throw std::invalid_argument("fit: expected times of at least two sizes");
  const double a = (yy * x1 - xy * y1) / determinant, b = (xx * y1 - xy * x1) / determinant;
  if (!(b > 0)) throw std::invalid_argument("fit: expected times that grow with the size");
  return {std::max(a, 0.0), 1 / b};
}

std::vector<Bucket> buckets(const Net& net, double compute_seconds, double first_cap, double cap,
                            double bytes_per_element) {
  std::vector<Bucket> list;
  Bucket open;
  const auto close = [&] {
    if (open.bytes > 0) list.push_back(open);
    open = {};
  };
  for (const Gradient& g : net.gradients) {
    open.bytes += static_cast<double>(g.elements) * bytes_per_element;
    open.ready = std::max(open.ready, g.ready * compute_seconds);
    if (open.bytes >= (list.empty() ? first_cap : cap)) close();
  }
  close();
  return list;
}

Step step_of(const std::vector<Bucket>& buckets, double compute_seconds,
             const std::vector<double>& seconds) {
  Step step{compute_seconds, 0, 0};
  double end = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    step.communicate += seconds[i];
    end = std::max(end, buckets[i].ready) + seconds[i];
  }
  step.total = std::max(end, compute_seconds);
  return step;
}

}  // namespace bench::scale
