// Calls of softmax, the losses, row gather and scatter, and random numbers.
#include <braid/core/kernel_args/index.hpp>
#include <braid/core/kernel_args/loss.hpp>
#include <braid/core/kernel_args/random.hpp>
#include <braid/core/kernel_args/softmax.hpp>

#include "kernels/calls.hpp"

namespace agreement {
namespace {

struct Rows {
  std::int64_t rows, n, shift;
  double level = 0;  // the center of the random numbers
};
const std::vector<Rows>& row_lists() {
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

std::string text(const char* kernel, const Rows& r) {
  return braid::str(kernel, " ", r.rows, " x ", r.n, ", offset ", r.shift,
                    r.level == 0 ? "" : ", far below 0");
}
/// Returns the numbers of all rows.
Numbers logits(const Rows& r, std::uint64_t seed, double reach) {
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

std::int64_t label(std::int64_t row, std::int64_t n) { return (row * 7 + n / 2) % n; }
Operand labels(const Rows& r, std::int64_t stride) {
  Numbers list(r.rows * stride, -99);
  for (std::int64_t i = 0; i < r.rows; ++i) list[i * stride] = static_cast<double>(label(i, r.n));
  return in(list, 0, always(DType::int64));
}
/// Returns the lse of each row.
Numbers lses(const Numbers& x, const Rows& r) {
  Numbers list;
  for (std::int64_t i = 0; i < r.rows; ++i) list.add(Row(x, i, r.n).lse);
  return list;
}
/// Options of the loss: rows with the label of row 0 are ignored, if there are enough rows and
/// classes.
constexpr double kSmoothing = 0.125;
bool ignores_label(const Rows& r) { return r.rows > 2 && r.n > 2; }

}  // namespace

std::vector<Call> calls_of_softmax(DType) {
  std::vector<Call> list;
  for (const bool log : {false, true})
    for (const Rows& r : row_lists())
      for (const double reach : {4, 40})
        list.push_back({braid::str(text(log ? "log softmax" : "softmax", r), ", up to ", reach),
                        {out(random(r.rows * r.n, 1), r.shift), in(logits(r, 2, reach), r.shift)},
                        [=](const Place& p) {
                          p.table.softmax({p.t, log, p[1], p[0], r.rows, r.n}, p.stream);
                        },
                        [=](DType t, const Values& v) {
                          Numbers bound(v[0].size());
                          for (std::int64_t k = 0; k < r.rows; ++k) {
                            const Row row(v[1], k, r.n);
                            for (std::int64_t i = k * r.n; i < (k + 1) * r.n; ++i) {
                              const double y = v[0][i],
                                           size = log ? row.of_lse() + std::fabs(v[1][i]) +
                                                            2 * std::fabs(y)
                                                      : y * (row.exponential() + row.of_sum() + 2);
                              bound[i] = rounding(t) * size + last(t, y);
                            }
                          }
                          return Values{bound};
                        }});
  return list;
}

std::vector<Call> calls_of_softmax_backward(DType) {
  std::vector<Call> list;
  for (const bool log : {false, true})
    for (const Rows& r : row_lists())
      list.push_back(
          {text(log ? "log softmax backward" : "softmax backward", r),
           {out(random(r.rows * r.n, 1), r.shift),
            in(random(r.rows * r.n, 2, log ? -4 : 0, log ? 0 : 1), r.shift),
            in(random(r.rows * r.n, 3), r.shift)},
           [=](const Place& p) {
             p.table.softmax_backward({p.t, log, p[1], p[2], p[0], r.rows, r.n}, p.stream);
           },
           [=](DType t, const Values& v) {
             Numbers bound(v[0].size());
             for (std::int64_t first = 0; first < bound.size(); first += r.n) {
               double size = 0;
               for (std::int64_t i = first; i < first + r.n; ++i)
                 size += std::fabs(log ? v[2][i] : v[1][i] * v[2][i]);
               for (std::int64_t i = first; i < first + r.n; ++i) {
                 const double dot = (log2_up(r.n) + 3) * size,
                              factor = log ? std::exp(v[1][i]) : std::fabs(v[1][i]);
                 bound[i] = rounding(t) * ((dot + 10 * size) * factor +
                                           3 * std::fabs(log ? 1 : v[1][i]) * std::fabs(v[2][i])) +
                            last(t, v[0][i]);
               }
             }
             return Values{bound};
           }});
  return list;
}

namespace {

Call cross_entropy(const Rows& r, std::int64_t stride) {
  return {text("cross entropy", r),
          {out(random(r.rows, 1), 0, statistics), out(random(1, 2)), in(logits(r, 3, 4), r.shift),
           labels(r, stride)},
          [=](const Place& p) {
            p.table.cross_entropy(
                {p.t, p[2], p.integers(3), stride, p[0], p[1], 1.0 / 3, r.rows, r.n}, p.stream);
          },
          [=](DType t, const Values& v) {
            Numbers bound(v[0].size());
            double sizes = 0, errors = 0;
            for (std::int64_t i = 0; i < r.rows; ++i) {
              const Row row(v[2], i, r.n);
              bound[i] = rounding(t) * row.of_lse();
              errors += row.of_lse();
              sizes += std::fabs(row.lse - v[2][i * r.n + label(i, r.n)]);
            }
            const double of_sum = rounding(t) * (errors + (log2_up(r.rows) + 4) * sizes) / 3;
            return Values{bound, {of_sum + last(t, v[1][0])}};
          }};
}

Call cross_entropy_by_options(const Rows& r) {
  return {text("cross entropy by options", r),
          {out(random(r.rows, 1), 0, statistics), out(random(1, 2)), out(random(r.rows, 3)),
           out(random(1, 4), 0, statistics), in(logits(r, 5, 4), r.shift), labels(r, 1),
           in(random(r.n, 6, 0.5, 1.5), r.shift)},
          [=](const Place& p) {
            p.table.cross_entropy({p.t, p[4], p.integers(5), 1, p[0], p[1], 1, r.rows, r.n, p[6],
                                   kSmoothing, ignores_label(r), label(0, r.n), true, p[2], p[3]},
                                  p.stream);
          },
          [=](DType t, const Values& v) {
            Numbers of_lses(v[0].size()), of_rows(v[2].size());
            double sizes = 0, errors = 0;
            for (std::int64_t i = 0; i < r.rows; ++i) {
              const Row row(v[4], i, r.n);
              of_lses[i] = rounding(t) * row.of_lse();
              double error = 0;
              for (std::int64_t c = 0; c < r.n; ++c) {
                const double d = std::fabs(row.lse - v[4][i * r.n + c]), w = v[6][c];
                error += kSmoothing / static_cast<double>(r.n) * w *
                         (row.of_lse() + (log2_up(r.n) + 8) * d);
                if (c == label(i, r.n)) error += w * (row.of_lse() + 8 * d);
              }
              of_rows[i] = rounding(t) * error + last(t, v[2][i]);
              errors += error, sizes += v[2][i];
            }
            const double total = v[3][0],
                         of_sum = (errors + (2 * log2_up(r.rows) + 8) * sizes) / total;
            return Values{of_lses,
                          {rounding(t) * of_sum + last(t, v[1][0])},
                          of_rows,
                          {rounding(t) * (log2_up(r.rows) + 4) * total}};
          }};
}

Call cross_entropy_backward(const Rows& r) {
  const Numbers x = logits(r, 3, 4);
  return {
      text("cross entropy backward", r),
      {out(random(r.rows * r.n, 1), r.shift), in(x, r.shift), labels(r, 2),
       in(lses(x, r), 0, statistics), in({1.5})},
      [=](const Place& p) {
        p.table.cross_entropy_backward(
            {p.t, p[1], p.integers(2), 2, p[3], p[4], p[0], 0.25, r.rows, r.n}, p.stream);
      },
      each([=](DType t, const Values& v, std::int64_t i) {
        const double difference = v[1][i] - v[3][i / r.n], exponential = std::exp(difference),
                     hot = i % r.n == label(i / r.n, r.n) ? 1 : 0;
        return rounding(t) * 1.5 * 0.25 *
                   (exponential * (std::fabs(difference) + 8) + 3 * std::fabs(exponential - hot)) +
               last(t, v[0][i]);
      })};
}

Call cross_entropy_backward_by_options(const Rows& r) {
  const Numbers x = logits(r, 3, 4);
  return {text("cross entropy backward by options", r),
          {out(random(r.rows * r.n, 1), r.shift), in(x, r.shift), labels(r, 1),
           in(lses(x, r), 0, statistics), in(random(r.rows, 4)),
           in(random(r.n, 6, 0.5, 1.5), r.shift), in({3}, 0, statistics)},
          [=](const Place& p) {
            p.table.cross_entropy_backward(
                {p.t, p[1], p.integers(2), 1, p[3], p[4], p[0], 1, r.rows, r.n, p[5], kSmoothing,
                 ignores_label(r), label(0, r.n), p[6], 1},
                p.stream);
          },
          [=](DType t, const Values& v) {
            Numbers bound(v[0].size());
            const double each_class = kSmoothing / static_cast<double>(r.n);
            double weights = 0;
            for (std::int64_t c = 0; c < r.n; ++c) weights += v[5][c] * each_class;
            for (std::int64_t i = 0; i < bound.size(); ++i) {
              const std::int64_t row = i / r.n, c = i % r.n, hot = label(row, r.n);
              const double difference = v[1][i] - v[3][row],
                           exponential = std::exp(difference) * (v[5][hot] + weights),
                           rest = v[5][c] * each_class + (c == hot ? v[5][hot] : 0);
              bound[i] =
                  rounding(t) * std::fabs(v[4][row]) / 3 *
                      (exponential * (std::fabs(difference) + 16 + log2_up(r.n)) + 6 * rest) +
                  last(t, v[0][i]);
            }
            return Values{bound};
          }};
}

}  // namespace

std::vector<Call> calls_of_cross_entropy(DType) {
  std::vector<Call> list;
  for (const Rows& r : row_lists()) {
    for (const std::int64_t stride : {1, 3}) list.push_back(cross_entropy(r, stride));
    if (r.rows > 0) list.push_back(cross_entropy_by_options(r));
  }
  return list;
}
std::vector<Call> calls_of_cross_entropy_backward(DType) {
  std::vector<Call> list;
  for (const Rows& r : row_lists()) {
    list.push_back(cross_entropy_backward(r));
    list.push_back(cross_entropy_backward_by_options(r));
  }
  return list;
}

namespace {

Sizes sizes_of_mse() {
  Sizes list = sizes();
  list.insert(list.end(), {127, 129, 512, 513, 4097, 9001, 10007});
  return list;
}

}  // namespace

std::vector<Call> calls_of_mse(DType) {
  std::vector<Call> list;
  for (const std::int64_t n : sizes_of_mse())
    for (const std::int64_t shift : {0, 1})
      list.push_back({braid::str("mse ", n, ", offset ", shift),
                      {out(random(1, 1)), in(random(n, 2), shift), in(random(n, 3), shift)},
                      [=](const Place& p) {
                        const double scale = n > 0 ? 1.0 / static_cast<double>(n) : 1;
                        p.table.mse({p.t, p[1], p[2], p[0], scale, n}, p.stream);
                      },
                      // each term: the rounding of the difference counts twice in the product
                      each([=](DType t, const Values& v, std::int64_t) {
                        return (log2_up(n) + 2 + 3 + 1) * rounding(t) * v[0][0] + last(t, v[0][0]);
                      })});
  return list;
}

std::vector<Call> calls_of_mse_backward(DType) {
  std::vector<Call> list;
  for (const std::int64_t n : sizes_of_mse())
    for (const std::int64_t shift : {0, 1})
      list.push_back(
          {braid::str("mse backward ", n, ", offset ", shift),
           {out(random(n, 1), shift), in(random(n, 2), shift), in(random(n, 3), shift), in({1.5})},
           [=](const Place& p) {
             p.table.mse_backward({p.t, p[1], p[2], p[3], p[0], 0.3, n}, p.stream);
           },
           each([](DType t, const Values& v, std::int64_t i) {
             return 4 * rounding(t) * std::fabs(v[0][i]) + last(t, v[0][i]);
           })});
  return list;
}

namespace {

struct Lookup {
  std::int64_t table, rows, width, shift;
};
const std::vector<Lookup> kLookups{{1, 1, 1, 0},     {7, 33, 31, 1},  {33, 129, 16, 0},
                                   {5, 127, 129, 1}, {3, 2, 1025, 0}, {129, 1025, 1, 1},
                                   {4, 0, 7, 0},     {4, 3, 0, 0}};

Operand index_of(const Lookup& k, bool wrap) {
  const double rows = static_cast<double>(k.table);
  Numbers list = random(k.rows, 9, wrap ? -rows : 0, rows);
  for (std::int64_t i = 0; i < list.size(); ++i) list[i] = std::floor(list[i]);
  return in(list, 0, always(DType::int64));
}
std::string text(const char* kernel, const Lookup& k) {
  return braid::str(kernel, ", ", k.rows, " of ", k.table, " rows of ", k.width, ", offset ",
                    k.shift);
}

}  // namespace

std::vector<Call> calls_of_gather_rows(DType) {
  std::vector<Call> list;
  for (const bool wrap : {false, true})
    for (const Lookup& k : kLookups)
      list.push_back({text("gather rows", k),
                      {out(random(k.rows * k.width, 1), k.shift),
                       in(random(k.table * k.width, 2), k.shift), index_of(k, wrap)},
                      [=](const Place& p) {
                        p.table.gather_rows({p.t, p[1], p.integers(2), p[0], k.table, k.rows,
                                             k.width, "gather_rows", wrap},
                                            p.stream);
                      }});
  return list;
}

std::vector<Call> calls_of_scatter_add_rows(DType) {
  std::vector<Call> list;
  for (const Lookup& k : kLookups)
    list.push_back({text("scatter add rows", k),
                    {out(Numbers(k.table * k.width), k.shift),
                     in(random(k.rows * k.width, 2), k.shift), index_of(k, true)},
                    [=](const Place& p) {
                      p.table.scatter_add_rows(
                          {p.t, p[0], p.integers(2), p[1], k.table, k.rows, k.width}, p.stream);
                    }});
  return list;
}

std::vector<Call> calls_of_random(DType) {
  std::vector<Call> list;
  constexpr const char* names[] = {"uniform", "normal", "integers"};
  for (const auto kind :
       {braid::RandomKind::uniform, braid::RandomKind::normal, braid::RandomKind::integers})
    for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 17, 31, 33, 127, 129, 1025, 10003})
      for (const auto& range :
           {std::pair{-1.0, 2.5}, {0.0, 1.0}, {-1.0, 0.0}, {0.1, 0.7}, {1e4, 1.0001e4}, {3.0, 2.0}})
        for (const std::int64_t shift : {0, 1})
          list.push_back({braid::str("random ", names[static_cast<int>(kind)], " ", n, " of ",
                                     range.first, " to ", range.second, ", offset ", shift),
                          {out(random(n, 1), shift)},
                          [=](const Place& p) {
                            p.table.random({kind, p.t, p[0], n, 77, static_cast<std::uint64_t>(n),
                                            range.first, range.second, -3, 99},
                                           p.stream);
                          }});
  return list;
}

}  // namespace agreement
