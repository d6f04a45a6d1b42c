#include <braid/core/internal/kernel_args/norm.hpp>

#include "kernels/calls.hpp"

namespace agreement {
namespace {

struct Rows {
  std::int64_t rows, n, groups, inner, shift;
  bool center;
  bool dx = true, dweight = true;  // wanted in backward, as dbias if center
  [[nodiscard]] std::int64_t affine() const { return groups * (n / inner); }
  [[nodiscard]] std::int64_t weight(std::int64_t row, std::int64_t j) const {
    return row % groups * (n / inner) + j / inner;
  }
  [[nodiscard]] std::string text(const char* kernel) const {
    return braid::str(kernel, " ", rows, " x ", n, ", ", groups, " groups, runs of ", inner,
                      ", offset ", shift, center ? "" : ", no mean", dx ? "" : ", no dx",
                      dweight ? "" : ", no dweight");
  }
};
const std::vector<Rows> kRows{{1, 1, 1, 1, 0, true},
                              {33, 31, 1, 1, 1, true},
                              {127, 8, 1, 1, 0, false},
                              {3, 1025, 1, 1, 0, true},
                              {2, 1024, 1, 1, 1, false},
                              {12, 15, 3, 5, 0, true},
                              {6, 12, 2, 1, 0, true},
                              {2, 8200, 1, 1, 0, true},
                              {4, 2000, 2, 500, 1, true},
                              {0, 5, 1, 1, 0, true},
                              {1000, 3, 1, 1, 0, true},
                              {129, 127, 1, 1, 0, true},
                              {17, 768, 1, 1, 0, true},
                              {15, 8192, 1, 1, 0, true},
                              {9, 8193, 1, 1, 0, false},
                              {5, 4100, 1, 1, 1, false},
                              {2100, 5, 1, 1, 0, false},
                              {4200, 16, 1, 1, 0, true},
                              {520, 1040, 1, 1, 0, true},
                              {7, 129, 1, 1, 0, true, false},
                              {6, 40, 1, 1, 0, true, true, false},
                              {3, 1200, 1, 1, 0, false, true, false}};

/// The statistics of a row: the mean, the mean magnitude and 1 / sqrt(var + eps).
struct RowOf {
  double mean = 0, size = 0, rstd = 0;
  RowOf(const Numbers& x, std::int64_t row, const Rows& r, double eps) {
    double squares = 0;
    const double n = static_cast<double>(r.n);
    for (std::int64_t j = 0; j < r.n; ++j)
      mean += x[row * r.n + j] / n, size += std::fabs(x[row * r.n + j]) / n;
    if (!r.center) mean = 0;
    for (std::int64_t j = 0; j < r.n; ++j)
      squares += (x[row * r.n + j] - mean) * (x[row * r.n + j] - mean) / n;
    rstd = 1 / std::sqrt(squares + eps);
  }
};
double steps(std::int64_t n) { return 2 * (log2_up(n) + 10); }

}  // namespace

std::vector<Call> calls_of_norm_rows(DType) {
  std::vector<Call> list;
  constexpr double eps = 1e-3;
  for (const Rows& r : kRows)
    list.push_back(
        {r.text("norm rows"),
         {out(random(r.rows * r.n, 1), r.shift), out(random(r.rows, 2), 0, statistics),
          out(random(r.rows, 3), 0, statistics), in(random(r.rows * r.n, 4), r.shift),
          in(random(r.affine(), 5)), in(random(r.affine(), 6))},
         [=](const Place& p) {
           p.table.norm_rows({p.t, r.center, p[3], p[4], p[5], p[0], r.center ? p[1] : nullptr,
                              p[2], eps, r.rows, r.n, r.groups, r.inner},
                             p.stream);
         },
         [=](DType t, const Values& v) {
           Numbers y(v[0].size()), mean(v[1].size()), rstd(v[2].size());
           const double u = rounding(t) * steps(r.n);
           for (std::int64_t row = 0; row < r.rows; ++row) {
             const RowOf of(v[3], row, r, eps);
             mean[row] = r.center ? u * of.size : 0;
             rstd[row] = u * of.rstd;
             for (std::int64_t j = 0; j < r.n; ++j) {
               const std::int64_t i = row * r.n + j, w = r.weight(row, j);
               const double h =
                   std::fabs(v[3][i] - of.mean) * of.rstd + (r.center ? of.size * of.rstd : 0);
               y[i] = u * (h * std::fabs(v[4][w]) + std::fabs(v[5][w])) + last(t, v[0][i]);
             }
           }
           return Values{y, mean, rstd};
         }});
  return list;
}

std::vector<Call> calls_of_norm_rows_backward(DType) {
  std::vector<Call> list;
  for (const Rows& r : kRows)
    list.push_back(
        {r.text("norm rows backward"),
         {out(random(r.rows * r.n, 1), r.shift), out(random(r.rows > 0 ? r.affine() : 0, 2)),
          out(random(r.rows > 0 ? r.affine() : 0, 3)), in(random(r.rows * r.n, 4), r.shift),
          in(random(r.affine(), 5)), in(random(r.rows, 6, -1, 1), 0, statistics),
          in(random(r.rows, 7, 0.5, 2), 0, statistics), in(random(r.rows * r.n, 8), r.shift)},
         [=](const Place& p) {
           p.table.norm_rows_backward({p.t, r.center, p[3], p[4], r.center ? p[5] : nullptr, p[6],
                                       p[7], r.dx ? p[0] : nullptr, r.dweight ? p[1] : nullptr,
                                       r.center ? p[2] : nullptr, r.rows, r.n, r.groups, r.inner},
                                      p.stream);
         },
         [=](DType t, const Values& v) {
           Numbers dx(v[0].size()), dweight(v[1].size()), dbias(v[2].size());
           const double u = rounding(t) * steps(r.n), n = static_cast<double>(r.n),
                        over_rows =
                            rounding(t) * (steps(r.rows * r.inner) + static_cast<double>(r.rows));
           for (std::int64_t row = 0; row < r.rows; ++row) {
             const double m = r.center ? v[5][row] : 0, rstd = v[6][row];
             double g_mean = 0, gh_mean = 0;
             const auto h = [&](std::int64_t j) {
               return (std::fabs(v[3][row * r.n + j]) + std::fabs(m)) * rstd;
             };
             const auto g = [&](std::int64_t j) {
               return std::fabs(v[7][row * r.n + j] * v[4][r.weight(row, j)]);
             };
             for (std::int64_t j = 0; j < r.n; ++j) {
               g_mean += g(j) / n, gh_mean += g(j) * h(j) / n;
               const std::int64_t w = r.weight(row, j);
               const double dy = std::fabs(v[7][row * r.n + j]);
               dweight[w] += over_rows * dy * h(j);
               dbias[w] += over_rows * dy;
             }
             for (std::int64_t j = 0; j < r.n; ++j)
               dx[row * r.n + j] =
                   u * rstd * (g(j) + g_mean + h(j) * gh_mean) + last(t, v[0][row * r.n + j]);
           }
           for (std::int64_t w = 0; w < dweight.size(); ++w)
             dweight[w] += last(t, v[1][w]), dbias[w] += last(t, v[2][w]);
           return Values{dx, dweight, dbias};
         }});
  return list;
}

namespace {

struct Channels {
  std::int64_t batch, channels, inner, shift;
  [[nodiscard]] std::int64_t size() const { return batch * channels * inner; }
  [[nodiscard]] std::int64_t channel(std::int64_t i) const { return i / inner % channels; }
  [[nodiscard]] double count() const { return static_cast<double>(batch * inner); }
  [[nodiscard]] std::string text(const char* kernel) const {
    return braid::str(kernel, " ", batch, " x ", channels, " x ", inner, ", offset ", shift);
  }
};
const std::vector<Channels> kChannels{{2, 1, 1, 0},    {33, 31, 1, 1}, {129, 8, 1, 0}, {3, 5, 7, 1},
                                      {2, 3, 1025, 0}, {70, 2, 16, 0}, {0, 3, 2, 0}};

/// Returns Σ f(i) over the elements of each channel.
Numbers over_channels(const Channels& c, const std::function<double(std::int64_t)>& f) {
  Numbers sums(c.channels);
  for (std::int64_t i = 0; i < c.size(); ++i) sums[c.channel(i)] += f(i);
  return sums;
}
double steps(const Channels& c) {
  return steps(c.batch * c.inner) + static_cast<double>(c.batch) / 4;
}

}  // namespace

std::vector<Call> calls_of_norm_channels(DType) {
  std::vector<Call> list;
  for (const bool given : {false, true})
    for (const Channels& c : kChannels) {
      const auto operand = [&](std::uint64_t seed) {
        return out(random(c.batch > 0 ? c.channels : 0, seed, 0.5, 1.5), 0, statistics);
      };
      list.push_back(
          {c.text(given ? "norm channels, given" : "norm channels"),
           {out(random(c.size(), 1), c.shift), operand(2), operand(3), operand(4),
            in(random(c.size(), 5), c.shift), in(random(c.channels, 6)), in(random(c.channels, 7))},
           [=](const Place& p) {
             p.table.norm_channels({p.t, given, p[4], p[5], p[6], p[0], p[1], p[2],
                                    given ? nullptr : p[3], 1e-3, c.batch, c.channels, c.inner},
                                   p.stream);
           },
           [=](DType t, const Values& v) {
             const double u = rounding(t) * steps(c),
                          // given statistics are float32 here and float64 in the reference run
                 of_given = rounding(DType::float32) * 2;
             const Numbers sizes =
                 over_channels(c, [&](std::int64_t i) { return std::fabs(v[4][i]) / c.count(); });
             Numbers y(v[0].size()), mean(v[1].size()), rstd(v[2].size()), var(v[3].size());
             for (std::int64_t k = 0; k < mean.size(); ++k) {
               mean[k] = given ? of_given : u * sizes[k];
               rstd[k] = given ? of_given : u * v[2][k];
               var[k] = given ? of_given : u * (v[3][k] + sizes[k] * sizes[k] * rounding(t));
             }
             for (std::int64_t i = 0; i < c.size(); ++i) {
               const std::int64_t k = c.channel(i);
               const double h = (std::fabs(v[4][i]) + std::fabs(v[1][k]) + sizes[k]) * v[2][k];
               y[i] = (u * h + (given ? rounding(t) * 4 * h : 0)) * std::fabs(v[5][k]) +
                      u * std::fabs(v[6][k]) + last(t, v[0][i]);
             }
             return Values{y, mean, rstd, var};
           }});
    }
  return list;
}

std::vector<Call> calls_of_norm_channels_backward(DType) {
  std::vector<Call> list;
  for (const Channels& c : kChannels) {
    const std::int64_t affine = c.batch > 0 ? c.channels : 0;
    list.push_back(
        {c.text("norm channels backward"),
         {out(random(c.size(), 1), c.shift), out(random(affine, 2)), out(random(affine, 3)),
          in(random(c.size(), 4), c.shift), in(random(c.channels, 5)),
          in(random(c.channels, 6, -1, 1), 0, statistics),
          in(random(c.channels, 7, 0.5, 2), 0, statistics), in(random(c.size(), 8), c.shift)},
         [=](const Place& p) {
           p.table.norm_channels_backward(
               {p.t, p[3], p[4], p[5], p[6], p[7], p[0], p[1], p[2], c.batch, c.channels, c.inner},
               p.stream);
         },
         [=](DType t, const Values& v) {
           const double u = rounding(t) * steps(c);
           const auto h = [&](std::int64_t i) {
             const std::int64_t k = c.channel(i);
             return (std::fabs(v[3][i]) + std::fabs(v[5][k])) * v[6][k];
           };
           const auto dy = [&](std::int64_t i) { return std::fabs(v[7][i]); };
           const Numbers sums = over_channels(c, dy),
                         moments = over_channels(c, [&](std::int64_t i) { return dy(i) * h(i); });
           Numbers dx(v[0].size()), dweight(v[1].size()), dbias(v[2].size());
           for (std::int64_t k = 0; k < dweight.size(); ++k)
             dweight[k] = u * moments[k] + last(t, v[1][k]),
             dbias[k] = u * sums[k] + last(t, v[2][k]);
           for (std::int64_t i = 0; i < c.size(); ++i) {
             const std::int64_t k = c.channel(i);
             const double inside = dy(i) + sums[k] / c.count() + h(i) * moments[k] / c.count();
             dx[i] = u * v[6][k] * std::fabs(v[4][k]) * inside + last(t, v[0][i]);
           }
           return Values{dx, dweight, dbias};
         }});
  }
  return list;
}

}  // namespace agreement
