// Calls of softmax, the losses, rows by index and random numbers.
#include <braid/core/kernel_args/index.hpp>
#include <braid/core/kernel_args/loss.hpp>
#include <braid/core/kernel_args/random.hpp>
#include <braid/core/kernel_args/softmax.hpp>

#include "cuda_kernels/every_kernel.hpp"

namespace agreement {
namespace {

struct Rows {
  std::int64_t rows, n, shift;
};
const std::vector<Rows> kRows{{1, 1, 0},    {33, 31, 1},  {127, 10, 0}, {3, 129, 1},
                              {2, 1025, 0}, {2, 1024, 1}, {0, 5, 0}};

double log2_up(std::int64_t n) { return n > 1 ? std::ceil(std::log2(static_cast<double>(n))) : 0; }
std::string text(const char* kernel, const Rows& r) {
  return braid::str(kernel, " ", r.rows, " x ", r.n, ", offset ", r.shift);
}

/// Of row r of x: the largest number, the largest distance from it, the logarithm of the sum of
/// exponentials.
struct Row {
  double max = -kInf, distance = 0, lse = 0;
  Row(const Numbers& x, std::int64_t r, std::int64_t n) {
    const auto at = [&](std::int64_t i) { return x[static_cast<std::size_t>(r * n + i)]; };
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) max = std::max(max, at(i));
    for (std::int64_t i = 0; i < n; ++i)
      distance = std::max(distance, max - at(i)), sum += std::exp(at(i) - max);
    lse = max + std::log(sum);
  }
  /// Relative error, in roundings, of an exponential of x - max and of their sum: the difference
  /// rounded, 4 ULP of exp (8 roundings), the sum's bound.
  [[nodiscard]] double exponential() const { return distance + 8; }
  [[nodiscard]] double sum(std::int64_t n) const { return exponential() + log2_up(n) + 2; }
  /// Error of lse: the sum's, 4 ULP of log, the last addition.
  [[nodiscard]] double of_lse(std::int64_t n) const {
    return sum(n) + 8 * (lse - max) + std::fabs(lse);
  }
};

std::int64_t label(std::int64_t row, std::int64_t n) { return (row * 7 + n / 2) % n; }
Numbers labels(const Rows& r, std::int64_t stride) {
  Numbers list(static_cast<std::size_t>(r.rows * stride), -99);
  for (std::int64_t i = 0; i < r.rows; ++i)
    list[static_cast<std::size_t>(i * stride)] = static_cast<double>(label(i, r.n));
  return list;
}
/// By options: rows with the first one's label are ignored where others are left.
constexpr double kSmoothing = 0.125;
bool ignores_label(const Rows& r) { return r.rows > 2 && r.n > 2; }
/// lse of 16-bit logits is float32.
DType of_lse(DType t) { return t == DType::float64 ? t : DType::float32; }

}  // namespace

std::vector<Call<braid::SoftmaxArgs>> calls_of(Of<braid::SoftmaxArgs>, DType) {
  std::vector<Call<braid::SoftmaxArgs>> list;
  for (const bool log : {false, true})
    for (const Rows& r : kRows)
      list.push_back(
          {text(log ? "log softmax" : "softmax", r),
           {out(random(r.rows * r.n, 1), r.shift), in(random(r.rows * r.n, 2, -4, 4), r.shift)},
           [=](DType t, const std::vector<void*>& at) {
             return braid::SoftmaxArgs{
                 .dtype = t, .log = log, .x = at[1], .y = at[0], .rows = r.rows, .n = r.n};
           },
           [=](DType t, const std::vector<Numbers>& v) {
             Numbers bound(v[0].size());
             for (std::size_t i = 0; i < bound.size(); ++i) {
               const Row row(v[1], static_cast<std::int64_t>(i) / r.n, r.n);
               const double y = v[0][i];
               bound[i] =
                   rounding(t) * (log ? row.of_lse(r.n) + std::fabs(v[1][i]) + 2 * std::fabs(y)
                                      : y * (row.exponential() + row.sum(r.n) + 2)) +
                   last(t, y);
             }
             return std::vector<Numbers>{bound};
           }});
  return list;
}

std::vector<Call<braid::SoftmaxBackwardArgs>> calls_of(Of<braid::SoftmaxBackwardArgs>, DType) {
  std::vector<Call<braid::SoftmaxBackwardArgs>> list;
  for (const bool log : {false, true})
    for (const Rows& r : kRows)
      list.push_back(
          {text(log ? "log softmax backward" : "softmax backward", r),
           {out(random(r.rows * r.n, 1), r.shift),
            in(random(r.rows * r.n, 2, log ? -4 : 0, log ? 0 : 1), r.shift),
            in(random(r.rows * r.n, 3), r.shift)},
           [=](DType t, const std::vector<void*>& at) {
             return braid::SoftmaxBackwardArgs{.dtype = t,
                                               .log = log,
                                               .y = at[1],
                                               .dy = at[2],
                                               .dx = at[0],
                                               .rows = r.rows,
                                               .n = r.n};
           },
           [=](DType t, const std::vector<Numbers>& v) {
             Numbers bound(v[0].size());
             for (std::size_t i = 0; i < bound.size(); ++i) {
               const std::size_t first =
                   i / static_cast<std::size_t>(r.n) * static_cast<std::size_t>(r.n);
               double size = 0;
               for (std::size_t k = first; k < first + static_cast<std::size_t>(r.n); ++k)
                 size += std::fabs(log ? v[2][k] : v[1][k] * v[2][k]);
               const double dot = (log2_up(r.n) + 3) * size,
                            factor = log ? std::exp(v[1][i]) : std::fabs(v[1][i]);
               bound[i] = rounding(t) * ((dot + 10 * size) * factor +
                                         3 * std::fabs(log ? 1 : v[1][i]) * std::fabs(v[2][i])) +
                          last(t, v[0][i]);
             }
             return std::vector<Numbers>{bound};
           }});
  return list;
}

std::vector<Call<braid::CrossEntropyArgs>> calls_of(Of<braid::CrossEntropyArgs>, DType) {
  std::vector<Call<braid::CrossEntropyArgs>> list;
  for (const std::int64_t stride : {1, 3})
    for (const Rows& r : kRows)
      list.push_back(
          {text("cross entropy", r),
           {out(random(r.rows, 1), 0, of_lse), out(random(1, 2)),
            in(random(r.rows * r.n, 3, -4, 4), r.shift),
            in(labels(r, stride), 0, always(DType::int64))},
           [=](DType t, const std::vector<void*>& at) {
             return braid::CrossEntropyArgs{.dtype = t,
                                            .x = at[2],
                                            .labels = static_cast<const std::int64_t*>(at[3]),
                                            .label_stride = stride,
                                            .lse = at[0],
                                            .sum = at[1],
                                            .scale = 1.0 / 3,
                                            .rows = r.rows,
                                            .n = r.n};
           },
           [=](DType t, const std::vector<Numbers>& v) {
             Numbers bound(v[0].size());
             double sizes = 0, errors = 0;
             for (std::int64_t i = 0; i < r.rows; ++i) {
               const Row row(v[2], i, r.n);
               const double x = v[2][static_cast<std::size_t>(i * r.n + label(i, r.n))];
               bound[static_cast<std::size_t>(i)] = rounding(t) * row.of_lse(r.n);
               errors += row.of_lse(r.n);
               sizes += std::fabs(row.lse - x);
             }
             const double of_sum = rounding(t) * (errors + (log2_up(r.rows) + 4) * sizes) / 3;
             return std::vector<Numbers>{bound, {of_sum + last(t, v[1][0])}};
           }});
  for (const Rows& r : kRows) {
    if (r.rows == 0 || r.n == 0) continue;
    const bool ignores = ignores_label(r);
    list.push_back(
        {text("cross entropy by options", r),
         {out(random(r.rows, 1), 0, of_lse), out(random(1, 2)), out(random(r.rows, 3)),
          out(random(1, 4), 0, of_lse), in(random(r.rows * r.n, 5, -4, 4), r.shift),
          in(labels(r, 1), 0, always(DType::int64)), in(random(r.n, 6, 0.5, 1.5), r.shift)},
         [=](DType t, const std::vector<void*>& at) {
           return braid::CrossEntropyArgs{.dtype = t,
                                          .x = at[4],
                                          .labels = static_cast<const std::int64_t*>(at[5]),
                                          .label_stride = 1,
                                          .lse = at[0],
                                          .sum = at[1],
                                          .scale = 1,
                                          .rows = r.rows,
                                          .n = r.n,
                                          .weight = at[6],
                                          .label_smoothing = kSmoothing,
                                          .ignores = ignores,
                                          .ignore_index = label(0, r.n),
                                          .mean = true,
                                          .row_loss = at[2],
                                          .total = at[3]};
         },
         [=](DType t, const std::vector<Numbers>& v) {
           Numbers of_lses(v[0].size()), of_rows(v[2].size());
           double sizes = 0, errors = 0;
           for (std::int64_t i = 0; i < r.rows; ++i) {
             const Row row(v[4], i, r.n);
             const std::size_t k = static_cast<std::size_t>(i);
             of_lses[k] = rounding(t) * row.of_lse(r.n);
             double error = 0;
             for (std::int64_t c = 0; c < r.n; ++c) {
               const double d = std::fabs(row.lse - v[4][static_cast<std::size_t>(i * r.n + c)]),
                            w = v[6][static_cast<std::size_t>(c)];
               error += kSmoothing / static_cast<double>(r.n) * w *
                        (row.of_lse(r.n) + (log2_up(r.n) + 8) * d);
               if (c == label(i, r.n)) error += w * (row.of_lse(r.n) + 8 * d);
             }
             of_rows[k] = rounding(t) * error + last(t, v[2][k]);
             errors += error, sizes += v[2][k];
           }
           const double total = v[3][0];
           return std::vector<Numbers>{
               of_lses,
               {rounding(t) * (errors + (2 * log2_up(r.rows) + 8) * sizes) / total +
                last(t, v[1][0])},
               of_rows,
               {rounding(t) * (log2_up(r.rows) + 4) * total}};
         }});
  }
  return list;
}

std::vector<Call<braid::CrossEntropyBackwardArgs>> calls_of(Of<braid::CrossEntropyBackwardArgs>,
                                                            DType) {
  std::vector<Call<braid::CrossEntropyBackwardArgs>> list;
  for (const Rows& r : kRows) {
    const Numbers x = random(r.rows * r.n, 3, -4, 4);
    Numbers lse;
    for (std::int64_t i = 0; i < r.rows; ++i) lse.push_back(Row(x, i, r.n).lse);
    list.push_back({text("cross entropy backward", r),
                    {out(random(r.rows * r.n, 1), r.shift), in(x, r.shift),
                     in(labels(r, 2), 0, always(DType::int64)),
                     in(lse, 0, [](DType) { return DType::float32; }), in({1.5})},
                    [=](DType t, const std::vector<void*>& at) {
                      return braid::CrossEntropyBackwardArgs{
                          .dtype = t,
                          .x = at[1],
                          .labels = static_cast<const std::int64_t*>(at[2]),
                          .label_stride = 2,
                          .lse = at[3],
                          .dy = at[4],
                          .dx = at[0],
                          .scale = 0.25,
                          .rows = r.rows,
                          .n = r.n};
                    },
                    [=](DType t, const std::vector<Numbers>& v) {
                      Numbers bound(v[0].size());
                      for (std::size_t i = 0; i < bound.size(); ++i) {
                        const std::int64_t row = static_cast<std::int64_t>(i) / r.n;
                        const double difference = v[1][i] - v[3][static_cast<std::size_t>(row)],
                                     p = std::exp(difference);
                        const bool hot = static_cast<std::int64_t>(i) % r.n == label(row, r.n);
                        bound[i] = rounding(t) * 1.5 * 0.25 *
                                       (p * (std::fabs(difference) + 8) + 3 * std::fabs(p - hot)) +
                                   last(t, v[0][i]);
                      }
                      return std::vector<Numbers>{bound};
                    }});
    list.back().operands[3].type = of_lse;
  }
  for (const Rows& r : kRows) {
    const Numbers x = random(r.rows * r.n, 3, -4, 4);
    Numbers lse;
    for (std::int64_t i = 0; i < r.rows; ++i) lse.push_back(Row(x, i, r.n).lse);
    const bool ignores = ignores_label(r);
    list.push_back(
        {text("cross entropy backward by options", r),
         {out(random(r.rows * r.n, 1), r.shift), in(x, r.shift),
          in(labels(r, 1), 0, always(DType::int64)), in(lse, 0, of_lse), in(random(r.rows, 4)),
          in(random(r.n, 6, 0.5, 1.5), r.shift), in({3}, 0, of_lse)},
         [=](DType t, const std::vector<void*>& at) {
           return braid::CrossEntropyBackwardArgs{.dtype = t,
                                                  .x = at[1],
                                                  .labels = static_cast<const std::int64_t*>(at[2]),
                                                  .label_stride = 1,
                                                  .lse = at[3],
                                                  .dy = at[4],
                                                  .dx = at[0],
                                                  .scale = 1,
                                                  .rows = r.rows,
                                                  .n = r.n,
                                                  .weight = at[5],
                                                  .label_smoothing = kSmoothing,
                                                  .ignores = ignores,
                                                  .ignore_index = label(0, r.n),
                                                  .total = at[6],
                                                  .dy_stride = 1};
         },
         [=](DType t, const std::vector<Numbers>& v) {
           Numbers bound(v[0].size());
           double weights = 0;
           for (const double w : v[5]) weights += w * kSmoothing / static_cast<double>(r.n);
           for (std::size_t i = 0; i < bound.size(); ++i) {
             const std::size_t row = i / static_cast<std::size_t>(r.n),
                               c = i % static_cast<std::size_t>(r.n);
             const auto hot = static_cast<std::size_t>(label(static_cast<std::int64_t>(row), r.n));
             const double difference = v[1][i] - v[3][row], share = v[5][hot] + weights,
                          p = std::exp(difference) * share;
             const double rest =
                 v[5][c] * kSmoothing / static_cast<double>(r.n) + (c == hot ? v[5][hot] : 0);
             bound[i] = rounding(t) * std::fabs(v[4][row]) / 3 *
                            (p * (std::fabs(difference) + 16 + log2_up(r.n)) + 6 * rest) +
                        last(t, v[0][i]);
           }
           return std::vector<Numbers>{bound};
         }});
  }
  return list;
}

std::vector<Call<braid::MseArgs>> calls_of(Of<braid::MseArgs>, DType) {
  std::vector<Call<braid::MseArgs>> list;
  for (const std::int64_t n : {0, 1, 31, 33, 127, 129, 1025, 9001})
    for (const std::int64_t shift : {0, 1})
      list.push_back({braid::str("mse ", n, ", offset ", shift),
                      {out(random(1, 1)), in(random(n, 2), shift), in(random(n, 3), shift)},
                      [=](DType t, const std::vector<void*>& at) {
                        return braid::MseArgs{.dtype = t,
                                              .a = at[1],
                                              .b = at[2],
                                              .sum = at[0],
                                              .scale = n > 0 ? 1.0 / static_cast<double>(n) : 1,
                                              .n = n};
                      },
                      // each term: a difference, twice in a product
                      [=](DType t, const std::vector<Numbers>& v) {
                        return std::vector<Numbers>{
                            {(log2_up(n) + 2 + 3 + 1) * rounding(t) * v[0][0] + last(t, v[0][0])}};
                      }});
  return list;
}

std::vector<Call<braid::MseBackwardArgs>> calls_of(Of<braid::MseBackwardArgs>, DType) {
  std::vector<Call<braid::MseBackwardArgs>> list;
  for (const std::int64_t n : {0, 1, 31, 33, 127, 129, 1025})
    for (const std::int64_t shift : {0, 1})
      list.push_back(
          {braid::str("mse backward ", n, ", offset ", shift),
           {out(random(n, 1), shift), in(random(n, 2), shift), in(random(n, 3), shift), in({1.5})},
           [=](DType t, const std::vector<void*>& at) {
             return braid::MseBackwardArgs{.dtype = t,
                                           .a = at[1],
                                           .b = at[2],
                                           .dy = at[3],
                                           .da = at[0],
                                           .scale = 0.3,
                                           .n = n};
           },
           [=](DType t, const std::vector<Numbers>& v) {
             Numbers bound(v[0].size());
             for (std::size_t i = 0; i < bound.size(); ++i)
               bound[i] = 4 * rounding(t) * std::fabs(v[0][i]) + last(t, v[0][i]);
             return std::vector<Numbers>{bound};
           }});
  return list;
}

namespace {

struct Lookup {
  std::int64_t table, rows, width, shift;
};
const std::vector<Lookup> kLookups{{1, 1, 1, 0},     {7, 33, 31, 1},  {33, 129, 16, 0},
                                   {5, 127, 129, 1}, {3, 2, 1025, 0}, {129, 1025, 1, 1},
                                   {4, 0, 7, 0},     {4, 3, 0, 0}};

Numbers indices(const Lookup& k, bool wrap) {
  braid::test::Numbers source(9);
  Numbers list;
  for (std::int64_t i = 0; i < k.rows; ++i)
    list.push_back(static_cast<double>(source.integer(wrap ? -k.table : 0, k.table)));
  return list;
}
std::string text(const char* kernel, const Lookup& k) {
  return braid::str(kernel, ", ", k.rows, " of ", k.table, " rows of ", k.width, ", offset ",
                    k.shift);
}

}  // namespace

std::vector<Call<braid::GatherRowsArgs>> calls_of(Of<braid::GatherRowsArgs>, DType) {
  std::vector<Call<braid::GatherRowsArgs>> list;
  for (const bool wrap : {false, true})
    for (const Lookup& k : kLookups)
      list.push_back(
          {text("gather rows", k),
           {out(random(k.rows * k.width, 1), k.shift), in(random(k.table * k.width, 2), k.shift),
            in(indices(k, wrap), 0, always(DType::int64))},
           [=](DType t, const std::vector<void*>& at) {
             return braid::GatherRowsArgs{.dtype = t,
                                          .table = at[1],
                                          .index = static_cast<const std::int64_t*>(at[2]),
                                          .out = at[0],
                                          .table_rows = k.table,
                                          .rows = k.rows,
                                          .width = k.width,
                                          .wrap = wrap};
           },
           nullptr});
  return list;
}

std::vector<Call<braid::ScatterAddRowsArgs>> calls_of(Of<braid::ScatterAddRowsArgs>, DType) {
  std::vector<Call<braid::ScatterAddRowsArgs>> list;
  for (const Lookup& k : kLookups)
    list.push_back(
        {text("scatter add rows", k),
         {out(Numbers(static_cast<std::size_t>(k.table * k.width)), k.shift),
          in(random(k.rows * k.width, 2), k.shift), in(indices(k, true), 0, always(DType::int64))},
         [=](DType t, const std::vector<void*>& at) {
           return braid::ScatterAddRowsArgs{.dtype = t,
                                            .table = at[0],
                                            .index = static_cast<const std::int64_t*>(at[2]),
                                            .dy = at[1],
                                            .table_rows = k.table,
                                            .rows = k.rows,
                                            .width = k.width};
         },
         nullptr});
  return list;
}

std::vector<Call<braid::RandomArgs>> calls_of(Of<braid::RandomArgs>, DType t) {
  std::vector<Call<braid::RandomArgs>> list;
  constexpr const char* names[] = {"uniform", "normal", "integers"};
  for (const auto kind :
       {braid::RandomKind::uniform, braid::RandomKind::normal, braid::RandomKind::integers})
    for (const std::int64_t n : {0, 1, 31, 33, 127, 129, 1025})
      for (const std::int64_t shift : {0, 1})
        list.push_back(
            {braid::str("random ", names[static_cast<int>(kind)], " ", n, ", offset ", shift),
             {out(random(n, 1), shift)},
             [=](DType type, const std::vector<void*>& at) {
               return braid::RandomArgs{.kind = kind,
                                        .dtype = type,
                                        .out = at[0],
                                        .n = n,
                                        .seed = 77,
                                        .stream = static_cast<std::uint64_t>(n),
                                        .low = -1,
                                        .high = 2.5,
                                        .ilow = -3,
                                        .ihigh = 99};
             },
             nullptr});
  (void)t;
  return list;
}

}  // namespace agreement
