#pragma once
// Activations and their derivatives for one number. They use long double where nearly equal numbers
// would cancel.
#include <algorithm>
#include <cmath>

namespace reference {

using Long = long double;

inline double gelu(double x) {
  return static_cast<double>(0.5L * Long{x} * std::erfc(-Long{x} / std::sqrt(2.0L)));
}
inline double gelu_tanh(double x) {
  const Long u = std::sqrt(2 / std::acos(-1.0L)) * (Long{x} + 0.044715L * Long{x} * x * x);
  return static_cast<double>(Long{x} / (1 + std::exp(-2 * u)));
}
/// The derivatives of both.
inline double gelu_slope(double x) {
  const Long v = x, pi = std::acos(-1.0L);
  return static_cast<double>(0.5L * std::erfc(-v / std::sqrt(2.0L)) +
                             v * std::exp(-v * v / 2) / std::sqrt(2 * pi));
}
inline double gelu_tanh_slope(double x) {
  const Long v = x, c = std::sqrt(2 / std::acos(-1.0L)), u = c * (v + 0.044715L * v * v * v),
             half = 1 / (1 + std::exp(-2 * u));  // (1 + tanh u) / 2
  return static_cast<double>(half + 2 * v * half * (1 - half) * c * (1 + 3 * 0.044715L * v * v));
}
inline double silu(double x) { return static_cast<double>(Long{x} / (1 + std::exp(-Long{x}))); }
inline double softplus(double x, double beta = 1, double threshold = 20) {
  return x * beta > threshold ? x
                              : static_cast<double>(std::log1p(std::exp(Long{x} * beta)) / beta);
}
/// a (e^cx - 1) for x <= 0, b x above.
inline double elu(double x, double a, double b = 1, double c = 1) {
  return x <= 0 ? static_cast<double>(Long{a} * std::expm1(Long{x} * c)) : b * x;
}
inline double leaky_relu(double x, double slope) { return x > 0 ? x : slope * x; }
inline double cut_off(double x, double low, double high) {
  return std::isnan(x) ? x : std::min(std::max(x, low), high);
}
inline double hardsigmoid(double x) { return cut_off(x + 3, 0, 6) / 6; }
inline double hardswish(double x) { return x * cut_off(x + 3, 0, 6) / 6; }
inline double mish(double x) {
  return static_cast<double>(Long{x} * std::tanh(std::log1p(std::exp(Long{x}))));
}
inline double logsigmoid(double x) {
  return static_cast<double>(std::min(Long{x}, Long{0}) -
                             std::log1p(std::exp(-std::fabs(Long{x}))));
}
inline double softsign(double x) { return x / (1 + std::fabs(x)); }
inline double logit(double x) { return static_cast<double>(std::log(Long{x} / (1 - Long{x}))); }

}  // namespace reference
