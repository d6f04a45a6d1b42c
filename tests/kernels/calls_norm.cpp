// Calls of normalization, dropout and attention.
#include <braid/core/kernel_args/attention.hpp>
#include <braid/core/kernel_args/dropout.hpp>
#include <braid/core/kernel_args/norm.hpp>

#include "kernels/calls.hpp"

namespace agreement {
namespace {

struct Rows {
  std::int64_t rows, n, groups, inner, shift;
  bool center;
  [[nodiscard]] std::int64_t affine() const { return groups * (n / inner); }
  [[nodiscard]] std::int64_t weight(std::int64_t row, std::int64_t j) const {
    return row % groups * (n / inner) + j / inner;
  }
  [[nodiscard]] std::string text(const char* kernel) const {
    return braid::str(kernel, " ", rows, " x ", n, ", ", groups, " groups, runs of ", inner,
                      ", offset ", shift, center ? "" : ", no mean");
  }
};
const std::vector<Rows> kRows{{1, 1, 1, 1, 0, true},      {33, 31, 1, 1, 1, true},
                              {127, 8, 1, 1, 0, false},   {3, 1025, 1, 1, 0, true},
                              {2, 1024, 1, 1, 1, false},  {12, 15, 3, 5, 0, true},
                              {6, 12, 2, 1, 0, true},     {2, 8200, 1, 1, 0, true},
                              {4, 2000, 2, 500, 1, true}, {0, 5, 1, 1, 0, true}};

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
                                       p[7], p[0], p[1], p[2], r.rows, r.n, r.groups, r.inner},
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

std::vector<Call> calls_of_dropout(DType) {
  std::vector<Call> list;
  struct Area {
    std::int64_t outer, rows, inner, first, shift;
  };
  for (const Area& s : std::vector<Area>{{1, 1, 1, 0, 0},
                                         {1, 33, 31, 0, 1},
                                         {1, 16, 64, 5, 0},
                                         {1, 7, 129, 3, 0},
                                         {3, 5, 7, 2, 0},
                                         {129, 2, 1, 1, 1},
                                         {1, 0, 4, 0, 0}})
    for (const double share : {0.0, 0.3, 1.0})
      list.push_back({braid::str("dropout ", s.outer, " x ", s.rows, " x ", s.inner, " from row ",
                                 s.first, ", p ", share, ", offset ", s.shift),
                      {out(random(s.outer * s.rows * s.inner, 1), s.shift),
                       in(random(s.outer * s.rows * s.inner, 2), s.shift)},
                      [=](const Place& p) {
                        p.table.dropout({p.t, p[1], p[0], s.outer, s.rows, s.inner, s.first, 77, 3,
                                         static_cast<std::uint64_t>(share * 0x1p32),
                                         share < 1 ? 1 / (1 - share) : 0},
                                        p.stream);
                      }});  // no bound: the same bits
  return list;
}

namespace {

struct Heads {
  std::int64_t batch, heads, queries, keys, width, value_width;
  bool causal, by_row;  // by_row: for each position, the rows of all heads are adjacent
  int mask;             // 0: none, 1: bool, 2: added
  double p;
  // queries near `far` and keys near -far: every score is far below zero
  double far = 0;
  [[nodiscard]] std::string text(const char* kernel) const {
    return braid::str(kernel, " ", batch, " x ", heads, ", ", queries, " queries, ", keys,
                      " keys, width ", width, " and ", value_width, causal ? ", causal" : "",
                      by_row ? ", by row" : "", ", mask ", mask, ", dropout ", p,
                      far > 0 ? ", far below 0" : "");
  }
  [[nodiscard]] std::int64_t q() const { return batch * heads * queries * width; }
  [[nodiscard]] std::int64_t k() const { return batch * heads * keys * width; }
  [[nodiscard]] Operand queries_at(std::uint64_t seed) const {
    return in(random(q(), seed, far - 1, far + 1));
  }
  [[nodiscard]] Operand keys_at(std::uint64_t seed) const {
    return in(random(k(), seed, -far - 1, 1 - far));
  }
  [[nodiscard]] std::int64_t v() const { return batch * heads * keys * value_width; }
  [[nodiscard]] std::int64_t out() const { return batch * heads * queries * value_width; }
  [[nodiscard]] std::int64_t rows() const { return batch * heads * queries; }
  [[nodiscard]] Numbers mask_numbers() const {
    return mask == 0 ? Numbers{1} : mask == 2 ? random(queries * keys, 9, -1, 1) : shows();
  }
  [[nodiscard]] Numbers shows() const {
    Numbers list;
    for (std::int64_t i = 0; i < queries * keys; ++i) list.add(i / keys != 1 && i % 3 != 0);
    return list;
  }
  [[nodiscard]] braid::AttentionOperand operand(void* data, std::int64_t n, std::int64_t w) const {
    return by_row ? braid::AttentionOperand{data, n * heads * w, w, heads * w}
                  : braid::AttentionOperand{data, heads * n * w, n * w, w};
  }
  /// Makes the arguments; `of` has the indices of q, k, v, out, lse, mask among the operands.
  [[nodiscard]] braid::AttentionArgs args(const Place& at, const std::size_t (&of)[6]) const {
    const braid::AttentionMask no_mask{}, given{at[of[5]], mask == 1, 0, 0, keys, 1};
    return {at.t,
            causal,
            0.5,
            operand(at[of[0]], queries, width),
            operand(at[of[1]], keys, width),
            operand(at[of[2]], keys, value_width),
            operand(at[of[3]], queries, value_width),
            mask > 0 ? given : no_mask,
            at[of[4]],
            batch,
            heads,
            queries,
            keys,
            width,
            value_width,
            5,
            6,
            static_cast<std::uint64_t>(p * 0x1p32),
            2,
            1 / (1 - p)};
  }
  /// The relative error of a probability, in roundings: that of the score (|q|, |k| <= far + 1,
  /// scale 1/2, the mask, lse), of exp and of the sums over keys.
  [[nodiscard]] double roundings() const {
    const double w = static_cast<double>(width), largest = 0.5 * w * (far + 1) * (far + 1) + 4;
    return 2 * ((w + 4) * largest + 16 + static_cast<double>(keys));
  }
};
const std::vector<Heads> kHeads{
    {1, 1, 1, 1, 1, 1, false, false, 0, 0},    {2, 2, 33, 31, 5, 7, false, true, 0, 0},
    {1, 2, 40, 70, 33, 16, true, false, 0, 0}, {1, 1, 70, 9, 4, 40, true, false, 0, 0.25},
    {1, 2, 5, 65, 8, 8, false, false, 1, 0},   {1, 1, 34, 34, 8, 8, false, true, 2, 0.5},
    {0, 2, 3, 4, 5, 5, false, false, 0, 0},    {1, 2, 33, 70, 4, 8, false, false, 0, 0, 20}};
Operand mask_of(const Heads& s) {
  return in(s.mask_numbers(), 0, s.mask == 1 ? always(DType::bool_) : nullptr);
}

}  // namespace

std::vector<Call> calls_of_attention(DType) {
  std::vector<Call> list;
  for (const Heads& s : kHeads)
    list.push_back(
        {s.text("attention"),
         {out(random(s.out(), 1)), out(random(s.rows(), 2), 0, statistics), s.queries_at(3),
          s.keys_at(4), in(random(s.v(), 5)), mask_of(s)},
         [=](const Place& p) { p.table.attention(s.args(p, {2, 3, 4, 0, 1, 5}), p.stream); },
         [=](DType t, const Values& v) {
           Numbers y(v[0].size()), lse(v[1].size());
           // |v| <= 2
           for (std::int64_t i = 0; i < y.size(); ++i)
             y[i] = rounding(t) * s.roundings() * 2 / (1 - s.p) + last(t, v[0][i]);
           for (std::int64_t i = 0; i < lse.size(); ++i)
             lse[i] = rounding(t) * (s.roundings() + 10 * std::fabs(v[1][i]));
           return Values{y, lse};
         }});
  return list;
}

std::vector<Call> calls_of_attention_backward(DType) {
  std::vector<Call> list;
  for (const Heads& s : kHeads)
    list.push_back(
        {s.text("attention backward"),
         {out(random(s.q(), 1)), out(random(s.k(), 2)), out(random(s.v(), 3)), s.queries_at(4),
          s.keys_at(5), in(random(s.v(), 6)), in(random(s.out(), 7)),
          in(random(s.rows(), 8, 3, 4), 0, statistics), in(random(s.out(), 9)), mask_of(s)},
         [=](const Place& p) {
           p.table.attention_backward(
               {s.args(p, {3, 4, 5, 6, 7, 9}), s.operand(p[8], s.queries, s.value_width),
                s.operand(p[0], s.queries, s.width), s.operand(p[1], s.keys, s.width),
                s.operand(p[2], s.keys, s.value_width)},
               p.stream);
         },
         [=](DType t, const Values& v) {
           // p <= exp(score - lse) with lse >= 3; |dp| and |dot| <= 4 value_width.
           const double largest = std::exp(0.5 * static_cast<double>(s.width) + 1 - 3),
                        w = static_cast<double>(s.value_width), drop = 1 / (1 - s.p),
                        keys = static_cast<double>(s.keys),
                        queries = static_cast<double>(s.queries);
           const double ds = largest * 8 * w * drop * 0.5,
                        of_p = rounding(t) * (s.roundings() + w + queries);
           const double sizes[] = {ds * keys, ds * queries, largest * drop * 2 * queries};
           Values bounds;
           for (std::size_t k = 0; k < 3; ++k) {
             Numbers& bound = bounds.emplace_back(v[k].size());
             for (std::int64_t i = 0; i < bound.size(); ++i)
               bound[i] = of_p * sizes[k] + last(t, v[k][i]);
           }
           return bounds;
         }});
  return list;
}

}  // namespace agreement
