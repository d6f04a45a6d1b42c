#pragma once
// Variance, log-sum-exp and norms by their formulas.
#include <cmath>
#include <limits>

#include "reference/reduce.hpp"

namespace reference {

inline double variance(const Numbers& v, double correction) {
  long double mean = 0, sum = 0;
  for (const double x : v) mean += x;
  mean /= static_cast<long double>(v.size());
  for (const double x : v) sum += (x - mean) * (x - mean);
  return static_cast<double>(sum / std::max(0.0L, static_cast<long double>(v.size()) -
                                                      static_cast<long double>(correction)));
}

inline double log_sum_exp(const Numbers& v) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double x : v) largest = std::isnan(x) || x > largest ? x : largest;
  if (std::isinf(largest)) return largest;
  long double sum = 0;
  for (const double x : v)
    sum += std::exp(static_cast<long double>(x) - static_cast<long double>(largest));
  return static_cast<double>(std::log(sum) + static_cast<long double>(largest));
}

inline double norm(const Numbers& v, double p) {
  long double sum = 0, largest = 0, smallest = std::numeric_limits<double>::infinity();
  for (const double x : v) {
    const long double a = std::fabs(static_cast<long double>(x));
    if (std::isnan(x)) return x;
    largest = std::max(largest, a);
    smallest = std::min(smallest, a);
    sum += p == 0 ? static_cast<long double>(x != 0) : std::pow(a, static_cast<long double>(p));
  }
  if (std::isinf(p)) return static_cast<double>(p > 0 ? largest : smallest);
  return static_cast<double>(p == 0 ? sum : std::pow(sum, 1 / static_cast<long double>(p)));
}

}  // namespace reference
