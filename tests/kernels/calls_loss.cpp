#include <braid/core/internal/kernel_args/loss.hpp>

#include "kernels/calls.hpp"
#include "kernels/rows.hpp"

namespace agreement {

namespace {

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

}  // namespace agreement
