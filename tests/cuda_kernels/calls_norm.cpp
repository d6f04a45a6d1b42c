// Calls of the normalisations, dropout and attention.
#include <braid/core/kernel_args/attention.hpp>
#include <braid/core/kernel_args/dropout.hpp>
#include <braid/core/kernel_args/norm.hpp>

#include "cuda_kernels/every_kernel.hpp"

namespace agreement {
namespace {

/// Statistics are never 16 bits.
DType statistics(DType t) { return t == DType::float64 ? t : DType::float32; }
double log2_up(double n) { return n > 1 ? std::ceil(std::log2(n)) : 0; }
double at(const Numbers& list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; }

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

/// A row: what its statistics are made of, and how far they may be off, in roundings.
struct RowOf {
  double mean = 0, size = 0, rstd = 0;
  RowOf(const Numbers& x, std::int64_t row, const Rows& r, double eps) {
    double squares = 0;
    const double n = static_cast<double>(r.n);
    for (std::int64_t j = 0; j < r.n; ++j)
      mean += at(x, row * r.n + j) / n, size += std::fabs(at(x, row * r.n + j)) / n;
    if (!r.center) mean = 0;
    for (std::int64_t j = 0; j < r.n; ++j)
      squares += (at(x, row * r.n + j) - mean) * (at(x, row * r.n + j) - mean) / n;
    rstd = 1 / std::sqrt(squares + eps);
  }
};
double steps(std::int64_t n) { return 2 * (log2_up(static_cast<double>(n)) + 10); }

}  // namespace

std::vector<Call<braid::NormRowsArgs>> calls_of(Of<braid::NormRowsArgs>, DType) {
  std::vector<Call<braid::NormRowsArgs>> list;
  constexpr double eps = 1e-3;
  for (const Rows& r : kRows)
    list.push_back({r.text("norm rows"),
                    {out(random(r.rows * r.n, 1), r.shift), out(random(r.rows, 2), 0, statistics),
                     out(random(r.rows, 3), 0, statistics), in(random(r.rows * r.n, 4), r.shift),
                     in(random(r.affine(), 5)), in(random(r.affine(), 6))},
                    [=](DType t, const std::vector<void*>& p) {
                      return braid::NormRowsArgs{.dtype = t,
                                                 .center = r.center,
                                                 .x = p[3],
                                                 .weight = p[4],
                                                 .bias = p[5],
                                                 .y = p[0],
                                                 .mean = r.center ? p[1] : nullptr,
                                                 .rstd = p[2],
                                                 .eps = eps,
                                                 .rows = r.rows,
                                                 .n = r.n,
                                                 .groups = r.groups,
                                                 .inner = r.inner};
                    },
                    [=](DType t, const std::vector<Numbers>& v) {
                      Numbers y(v[0].size()), mean(v[1].size()), rstd(v[2].size());
                      const double u = rounding(t) * steps(r.n);
                      for (std::int64_t row = 0; row < r.rows; ++row) {
                        const RowOf of(v[3], row, r, eps);
                        mean[static_cast<std::size_t>(row)] = r.center ? u * of.size : 0;
                        rstd[static_cast<std::size_t>(row)] = u * of.rstd;
                        for (std::int64_t j = 0; j < r.n; ++j) {
                          const std::int64_t i = row * r.n + j, w = r.weight(row, j);
                          const double h = std::fabs(at(v[3], i) - of.mean) * of.rstd +
                                           (r.center ? of.size * of.rstd : 0);
                          y[static_cast<std::size_t>(i)] =
                              u * (h * std::fabs(at(v[4], w)) + std::fabs(at(v[5], w))) +
                              last(t, at(v[0], i));
                        }
                      }
                      return std::vector<Numbers>{y, mean, rstd};
                    }});
  return list;
}

std::vector<Call<braid::NormRowsBackwardArgs>> calls_of(Of<braid::NormRowsBackwardArgs>, DType) {
  std::vector<Call<braid::NormRowsBackwardArgs>> list;
  for (const Rows& r : kRows)
    list.push_back(
        {r.text("norm rows backward"),
         {out(random(r.rows * r.n, 1), r.shift), out(random(r.rows > 0 ? r.affine() : 0, 2)),
          out(random(r.rows > 0 ? r.affine() : 0, 3)), in(random(r.rows * r.n, 4), r.shift),
          in(random(r.affine(), 5)), in(random(r.rows, 6, -1, 1), 0, statistics),
          in(random(r.rows, 7, 0.5, 2), 0, statistics), in(random(r.rows * r.n, 8), r.shift)},
         [=](DType t, const std::vector<void*>& p) {
           return braid::NormRowsBackwardArgs{.dtype = t,
                                              .center = r.center,
                                              .x = p[3],
                                              .weight = p[4],
                                              .mean = r.center ? p[5] : nullptr,
                                              .rstd = p[6],
                                              .dy = p[7],
                                              .dx = p[0],
                                              .dweight = p[1],
                                              .dbias = p[2],
                                              .rows = r.rows,
                                              .n = r.n,
                                              .groups = r.groups,
                                              .inner = r.inner};
         },
         [=](DType t, const std::vector<Numbers>& v) {
           Numbers dx(v[0].size()), dweight(v[1].size()), dbias(v[2].size());
           const double u = rounding(t) * steps(r.n),
                        over_rows =
                            rounding(t) * (steps(r.rows * r.inner) + static_cast<double>(r.rows));
           for (std::int64_t row = 0; row < r.rows; ++row) {
             const double m = r.center ? at(v[5], row) : 0, rstd = at(v[6], row);
             double g_mean = 0, gh_mean = 0;
             const auto h = [&](std::int64_t j) {
               return (std::fabs(at(v[3], row * r.n + j)) + std::fabs(m)) * rstd;
             };
             const auto g = [&](std::int64_t j) {
               return std::fabs(at(v[7], row * r.n + j) * at(v[4], r.weight(row, j)));
             };
             for (std::int64_t j = 0; j < r.n; ++j) {
               g_mean += g(j) / static_cast<double>(r.n),
                   gh_mean += g(j) * h(j) / static_cast<double>(r.n);
               const auto w = static_cast<std::size_t>(r.weight(row, j));
               const double dy = std::fabs(at(v[7], row * r.n + j));
               dweight[w] += over_rows * dy * h(j);
               dbias[w] += over_rows * dy;
             }
             for (std::int64_t j = 0; j < r.n; ++j)
               dx[static_cast<std::size_t>(row * r.n + j)] =
                   u * rstd * (g(j) + g_mean + h(j) * gh_mean) + last(t, at(v[0], row * r.n + j));
           }
           for (std::size_t w = 0; w < dweight.size(); ++w)
             dweight[w] += last(t, v[1][w]), dbias[w] += last(t, v[2][w]);
           return std::vector<Numbers>{dx, dweight, dbias};
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

/// Σ over a channel of f(i).
template <class F> Numbers over_channels(const Channels& c, F f) {
  Numbers sums(static_cast<std::size_t>(c.channels));
  for (std::int64_t i = 0; i < c.size(); ++i) sums[static_cast<std::size_t>(c.channel(i))] += f(i);
  return sums;
}
double steps(const Channels& c) {
  return steps(c.batch * c.inner) + static_cast<double>(c.batch) / 4;
}

}  // namespace

std::vector<Call<braid::NormChannelsArgs>> calls_of(Of<braid::NormChannelsArgs>, DType) {
  std::vector<Call<braid::NormChannelsArgs>> list;
  for (const bool given : {false, true})
    for (const Channels& c : kChannels) {
      const std::int64_t statistic = c.batch > 0 ? c.channels : 0;
      const auto operand = [&](std::uint64_t seed) {
        return out(random(statistic, seed, 0.5, 1.5), 0, statistics);
      };
      list.push_back(
          {c.text(given ? "norm channels, given" : "norm channels"),
           {out(random(c.size(), 1), c.shift), operand(2), operand(3), operand(4),
            in(random(c.size(), 5), c.shift), in(random(c.channels, 6)), in(random(c.channels, 7))},
           [=](DType t, const std::vector<void*>& p) {
             return braid::NormChannelsArgs{.dtype = t,
                                            .given = given,
                                            .x = p[4],
                                            .weight = p[5],
                                            .bias = p[6],
                                            .y = p[0],
                                            .mean = p[1],
                                            .rstd = p[2],
                                            .var = given ? nullptr : p[3],
                                            .eps = 1e-3,
                                            .batch = c.batch,
                                            .channels = c.channels,
                                            .inner = c.inner};
           },
           [=](DType t, const std::vector<Numbers>& v) {
             const double u = rounding(t) * steps(c);
             const Numbers sizes = over_channels(
                 c, [&](std::int64_t i) { return std::fabs(at(v[4], i)) / c.count(); });
             Numbers y(v[0].size()), mean(v[1].size()), rstd(v[2].size()), var(v[3].size());
             for (std::size_t k = 0; k < mean.size(); ++k) {
               // A given number is float32 beside the float64 run.
               mean[k] = given ? rounding(DType::float32) * 2 : u * sizes[k];
               rstd[k] = given ? rounding(DType::float32) * 2 : u * v[2][k];
               var[k] = given ? rounding(DType::float32) * 2
                              : u * (v[3][k] + sizes[k] * sizes[k] * rounding(t));
             }
             for (std::int64_t i = 0; i < c.size(); ++i) {
               const auto k = static_cast<std::size_t>(c.channel(i));
               const double h = (std::fabs(at(v[4], i)) + std::fabs(v[1][k]) + sizes[k]) * v[2][k];
               y[static_cast<std::size_t>(i)] =
                   (u * h + (given ? rounding(t) * 4 * h : 0)) * std::fabs(v[5][k]) +
                   u * std::fabs(v[6][k]) + last(t, at(v[0], i));
             }
             return std::vector<Numbers>{y, mean, rstd, var};
           }});
    }
  return list;
}

std::vector<Call<braid::NormChannelsBackwardArgs>> calls_of(Of<braid::NormChannelsBackwardArgs>,
                                                            DType) {
  std::vector<Call<braid::NormChannelsBackwardArgs>> list;
  for (const Channels& c : kChannels) {
    const std::int64_t affine = c.batch > 0 ? c.channels : 0;
    list.push_back(
        {c.text("norm channels backward"),
         {out(random(c.size(), 1), c.shift), out(random(affine, 2)), out(random(affine, 3)),
          in(random(c.size(), 4), c.shift), in(random(c.channels, 5)),
          in(random(c.channels, 6, -1, 1), 0, statistics),
          in(random(c.channels, 7, 0.5, 2), 0, statistics), in(random(c.size(), 8), c.shift)},
         [=](DType t, const std::vector<void*>& p) {
           return braid::NormChannelsBackwardArgs{.dtype = t,
                                                  .x = p[3],
                                                  .weight = p[4],
                                                  .mean = p[5],
                                                  .rstd = p[6],
                                                  .dy = p[7],
                                                  .dx = p[0],
                                                  .dweight = p[1],
                                                  .dbias = p[2],
                                                  .batch = c.batch,
                                                  .channels = c.channels,
                                                  .inner = c.inner};
         },
         [=](DType t, const std::vector<Numbers>& v) {
           const double u = rounding(t) * steps(c);
           const auto h = [&](std::int64_t i) {
             const std::int64_t k = c.channel(i);
             return (std::fabs(at(v[3], i)) + std::fabs(at(v[5], k))) * at(v[6], k);
           };
           const Numbers sums = over_channels(
                             c, [&](std::int64_t i) { return std::fabs(at(v[7], i)); }),
                         moments = over_channels(
                             c, [&](std::int64_t i) { return std::fabs(at(v[7], i)) * h(i); });
           Numbers dx(v[0].size()), dweight(v[1].size()), dbias(v[2].size());
           for (std::size_t k = 0; k < dweight.size(); ++k)
             dweight[k] = u * moments[k] + last(t, v[1][k]),
             dbias[k] = u * sums[k] + last(t, v[2][k]);
           for (std::int64_t i = 0; i < c.size(); ++i) {
             const auto k = static_cast<std::size_t>(c.channel(i));
             const double inside =
                 std::fabs(at(v[7], i)) + sums[k] / c.count() + h(i) * moments[k] / c.count();
             dx[static_cast<std::size_t>(i)] =
                 u * v[6][k] * std::fabs(v[4][k]) * inside + last(t, at(v[0], i));
           }
           return std::vector<Numbers>{dx, dweight, dbias};
         }});
  }
  return list;
}

std::vector<Call<braid::DropoutArgs>> calls_of(Of<braid::DropoutArgs>, DType) {
  std::vector<Call<braid::DropoutArgs>> list;
  struct Place {
    std::int64_t outer, rows, inner, first, shift;
  };
  for (const Place& s : std::vector<Place>{{1, 1, 1, 0, 0},
                                           {1, 33, 31, 0, 1},
                                           {1, 16, 64, 5, 0},
                                           {1, 7, 129, 3, 0},
                                           {3, 5, 7, 2, 0},
                                           {129, 2, 1, 1, 1},
                                           {1, 0, 4, 0, 0}})
    for (const double p : {0.0, 0.3, 1.0})
      list.push_back({braid::str("dropout ", s.outer, " x ", s.rows, " x ", s.inner, " from row ",
                                 s.first, ", p ", p, ", offset ", s.shift),
                      {out(random(s.outer * s.rows * s.inner, 1), s.shift),
                       in(random(s.outer * s.rows * s.inner, 2), s.shift)},
                      [=](DType t, const std::vector<void*>& at) {
                        return braid::DropoutArgs{
                            .dtype = t,
                            .x = at[1],
                            .y = at[0],
                            .outer = s.outer,
                            .rows = s.rows,
                            .inner = s.inner,
                            .first_row = s.first,
                            .seed = 77,
                            .stream = 3,
                            .threshold = static_cast<std::uint64_t>(p * 0x1p32),
                            .scale = p < 1 ? 1 / (1 - p) : 0};
                      },
                      nullptr});  // the same bits
  return list;
}

namespace {

struct Heads {
  std::int64_t batch, heads, queries, keys, width, value_width;
  bool causal, by_row;  // by_row: rows of all heads side by side
  int mask;             // 0: none, 1: bool, 2: added
  double p;
  [[nodiscard]] std::string text(const char* kernel) const {
    return braid::str(kernel, " ", batch, " x ", heads, ", ", queries, " queries, ", keys,
                      " keys, width ", width, " and ", value_width, causal ? ", causal" : "",
                      by_row ? ", by row" : "", ", mask ", mask, ", dropout ", p);
  }
  [[nodiscard]] std::int64_t q() const { return batch * heads * queries * width; }
  [[nodiscard]] std::int64_t k() const { return batch * heads * keys * width; }
  [[nodiscard]] std::int64_t v() const { return batch * heads * keys * value_width; }
  [[nodiscard]] std::int64_t out() const { return batch * heads * queries * value_width; }
  [[nodiscard]] std::int64_t rows() const { return batch * heads * queries; }
  [[nodiscard]] Numbers mask_numbers() const {
    return mask == 0 ? Numbers{1} : mask == 2 ? random(queries * keys, 9, -1, 1) : shows();
  }
  [[nodiscard]] Numbers shows() const {
    Numbers list;
    for (std::int64_t i = 0; i < queries * keys; ++i) list.push_back(i / keys != 1 && i % 3 != 0);
    return list;
  }
  [[nodiscard]] braid::AttentionOperand operand(void* data, std::int64_t n, std::int64_t w) const {
    return by_row ? braid::AttentionOperand{data, n * heads * w, w, heads * w}
                  : braid::AttentionOperand{data, heads * n * w, n * w, w};
  }
  [[nodiscard]] braid::AttentionArgs args(DType t, void* q_at, void* k_at, void* v_at, void* out_at,
                                          void* lse, void* mask_at) const {
    braid::AttentionArgs a{};
    a.dtype = t;
    a.causal = causal;
    a.scale = 0.5;
    a.q = operand(q_at, queries, width);
    a.k = operand(k_at, keys, width);
    a.v = operand(v_at, keys, value_width);
    a.out = operand(out_at, queries, value_width);
    if (mask > 0) a.mask = {mask_at, mask == 1, 0, 0, keys, 1};
    a.lse = lse;
    a.batch = batch;
    a.heads = heads;
    a.queries = queries;
    a.keys = keys;
    a.width = width;
    a.value_width = value_width;
    a.seed = 5;
    a.stream = 6;
    a.threshold = static_cast<std::uint64_t>(p * 0x1p32);
    a.first_batch = 2;
    a.drop_scale = 1 / (1 - p);
    return a;
  }
  /// Roundings of a probability, relative: of the score (|q|, |k| <= 1, scale 1/2, the mask, lse),
  /// of exp and of the sums over keys.
  [[nodiscard]] double roundings() const {
    const double w = static_cast<double>(width), largest = 0.5 * w + 4;
    return 2 * ((w + 4) * largest + 16 + static_cast<double>(keys));
  }
};
const std::vector<Heads> kHeads{
    {1, 1, 1, 1, 1, 1, false, false, 0, 0},    {2, 2, 33, 31, 5, 7, false, true, 0, 0},
    {1, 2, 40, 70, 33, 16, true, false, 0, 0}, {1, 1, 70, 9, 4, 40, true, false, 0, 0.25},
    {1, 2, 5, 65, 8, 8, false, false, 1, 0},   {1, 1, 34, 34, 8, 8, false, true, 2, 0.5},
    {0, 2, 3, 4, 5, 5, false, false, 0, 0}};
std::function<DType(DType)> mask_type(int mask) {
  return mask == 1 ? always(DType::bool_) : std::function<DType(DType)>([](DType t) { return t; });
}

}  // namespace

std::vector<Call<braid::AttentionArgs>> calls_of(Of<braid::AttentionArgs>, DType) {
  std::vector<Call<braid::AttentionArgs>> list;
  for (const Heads& s : kHeads)
    list.push_back({s.text("attention"),
                    {out(random(s.out(), 1)), out(random(s.rows(), 2), 0, statistics),
                     in(random(s.q(), 3, -1, 1)), in(random(s.k(), 4, -1, 1)), in(random(s.v(), 5)),
                     in(s.mask_numbers(), 0, mask_type(s.mask))},
                    [=](DType t, const std::vector<void*>& p) {
                      return s.args(t, p[2], p[3], p[4], p[0], p[1], p[5]);
                    },
                    [=](DType t, const std::vector<Numbers>& v) {
                      Numbers y(v[0].size()), lse(v[1].size());
                      // |v| <= 2
                      for (std::size_t i = 0; i < y.size(); ++i)
                        y[i] = rounding(t) * s.roundings() * 2 / (1 - s.p) + last(t, v[0][i]);
                      for (std::size_t i = 0; i < lse.size(); ++i)
                        lse[i] = rounding(t) * (s.roundings() + 10 * std::fabs(v[1][i]));
                      return std::vector<Numbers>{y, lse};
                    }});
  return list;
}

std::vector<Call<braid::AttentionBackwardArgs>> calls_of(Of<braid::AttentionBackwardArgs>, DType) {
  std::vector<Call<braid::AttentionBackwardArgs>> list;
  for (const Heads& s : kHeads)
    list.push_back(
        {s.text("attention backward"),
         {out(random(s.q(), 1)), out(random(s.k(), 2)), out(random(s.v(), 3)),
          in(random(s.q(), 4, -1, 1)), in(random(s.k(), 5, -1, 1)), in(random(s.v(), 6)),
          in(random(s.out(), 7)), in(random(s.rows(), 8, 3, 4), 0, statistics),
          in(random(s.out(), 9)), in(s.mask_numbers(), 0, mask_type(s.mask))},
         [=](DType t, const std::vector<void*>& p) {
           return braid::AttentionBackwardArgs{
               .forward = s.args(t, p[3], p[4], p[5], p[6], p[7], p[9]),
               .dout = s.operand(p[8], s.queries, s.value_width),
               .dq = s.operand(p[0], s.queries, s.width),
               .dk = s.operand(p[1], s.keys, s.width),
               .dv = s.operand(p[2], s.keys, s.value_width)};
         },
         [=](DType t, const std::vector<Numbers>& v) {
           // p <= exp(score - lse) with lse >= 3; |dp| and |dot| <= 4 value_width.
           const double largest = std::exp(0.5 * static_cast<double>(s.width) + 1 - 3),
                        w = static_cast<double>(s.value_width), drop = 1 / (1 - s.p);
           const double ds = largest * 8 * w * drop * 0.5,
                        of_p = rounding(t) * (s.roundings() + w + static_cast<double>(s.queries));
           Numbers dq(v[0].size()), dk(v[1].size()), dv(v[2].size());
           for (std::size_t i = 0; i < dq.size(); ++i)
             dq[i] = of_p * ds * static_cast<double>(s.keys) + last(t, v[0][i]);
           for (std::size_t i = 0; i < dk.size(); ++i)
             dk[i] = of_p * ds * static_cast<double>(s.queries) + last(t, v[1][i]);
           for (std::size_t i = 0; i < dv.size(); ++i)
             dv[i] = of_p * largest * drop * 2 * static_cast<double>(s.queries) + last(t, v[2][i]);
           return std::vector<Numbers>{dq, dk, dv};
         }});
  return list;
}

}  // namespace agreement
