#pragma once
// The rows with which softmax and cross_entropy are called, and the errors of their sums.
#include <algorithm>

#include "kernels/calls.hpp"

namespace agreement {

struct Rows {
  std::int64_t rows, n, shift;
  double level = 0;  // the center of the random numbers
};
inline const std::vector<Rows>& row_lists() {
  static const std::vector<Rows> list = [] {
    std::vector<Rows> all{{1, 1, 0},    {1, 7, 1},    {3, 2, 0},    {5, 7, 1},    {4, 8, 0},
                          {9, 8, 0},    {3, 15, 1},   {17, 16, 0},  {17, 17, 0},  {33, 31, 1},
                          {7, 33, 0},   {3, 48, 0},   {2, 65, 1},   {64, 10, 0},  {127, 10, 0},
                          {3, 129, 1},  {5, 256, 1},  {5, 300, 0},  {33, 700, 1}, {3, 1024, 0},
                          {3, 1025, 0}, {2, 1040, 0}, {601, 10, 0}, {5000, 3, 1}, {2, 5001, 0},
                          {2, 8192, 0}, {2, 8193, 1}, {2, 8208, 0}, {3, 9001, 0}, {1, 20000, 0},
                          {0, 5, 0}};
    // Numbers far below zero: with a maximum that starts at 0, all exponentials would underflow.
    for (const std::int64_t n : {7, 300, 1025, 9001}) all.push_back({3, n, 0, -1e4});
    if (!on_cuda()) all.insert(all.end(), {{2000, 10, 1}, {3001, 10, 0}, {1, 50001, 0}});
    return all;
  }();
  return list;
}

inline std::string text(const char* kernel, const Rows& r) {
  return braid::str(kernel, " ", r.rows, " x ", r.n, ", offset ", r.shift,
                    r.level == 0 ? "" : ", far below 0");
}
/// Returns the numbers of all rows.
inline Numbers logits(const Rows& r, std::uint64_t seed, double reach) {
  return random(r.rows * r.n, seed, r.level - reach, r.level + reach);
}

/// Statistics of row r of x: the maximum, the largest distance from it, and the log-sum-exp.
struct Row {
  std::int64_t n;
  double max = -kInf, distance = 0, lse = 0;
  Row(const Numbers& x, std::int64_t r, std::int64_t width) : n(width) {
    double sum = 0;
    for (std::int64_t i = r * n; i < (r + 1) * n; ++i) max = std::max(max, x[i]);
    for (std::int64_t i = r * n; i < (r + 1) * n; ++i)
      distance = std::max(distance, max - x[i]), sum += std::exp(x[i] - max);
    lse = max + std::log(sum);
  }
  /// The relative errors, in roundings, of exp(x - max) and of the sum: the rounding of the
  /// difference, 4 ULP of exp (8 roundings), the bound of the sum.
  [[nodiscard]] double exponential() const { return distance + 8; }
  [[nodiscard]] double of_sum() const { return exponential() + log2_up(n) + 2; }
  /// The error of lse: that of the sum, 4 ULP of log, the last addition.
  [[nodiscard]] double of_lse() const { return of_sum() + 8 * (lse - max) + std::fabs(lse); }
};

}  // namespace agreement
