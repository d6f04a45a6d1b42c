// Calls of gather, scatter, scan and sort: kernels that process lines along a dim.
#include <braid/core/kernel_args/index.hpp>
#include <braid/core/kernel_args/scan.hpp>
#include <braid/core/kernel_args/sort.hpp>

#include "kernels/calls.hpp"

namespace agreement {
namespace {

/// An index of shape [outer, m, inner] into the middle dim of a tensor [outer, n, inner].
struct Places {
  std::int64_t outer, n, inner, m, shift;
  std::int64_t wrong = -1;  ///< the position of an index that is out of range
};
const std::vector<Places> kPlaces{{1, 1, 1, 1, 0},      {33, 31, 1, 1, 1},  {3, 7, 129, 5, 0},
                                  {1, 129, 1, 1025, 1}, {2, 5, 3, 1025, 0}, {5, 33, 2, 0, 0},
                                  {0, 4, 3, 2, 0},      {4, 0, 2, 0, 0},    {3, 5, 7, 9, 1, 100},
                                  {1, 2, 1, 3, 0, 2}};

std::string text(const char* kernel, const Places& p) {
  return braid::str(kernel, " ", p.m, " of [", p.outer, ", ", p.n, ", ", p.inner, "]",
                    p.wrong >= 0 ? ", one out of range" : "");
}
Operand index_of(const Places& p) {
  Numbers list(p.outer * p.m * p.inner);
  for (std::int64_t i = 0; i < list.size(); ++i)
    list[i] = static_cast<double>(p.n == 0 ? 0 : (i * 5 + i / 3) % p.n);
  if (p.wrong >= 0) list[p.wrong] = static_cast<double>(p.n);
  return in(list, 0, always(DType::int64));
}

}  // namespace

std::vector<Call> calls_of_gather(DType) {
  std::vector<Call> list;
  for (const Places& s : kPlaces) {
    const std::int64_t line = s.m * s.inner;
    const Loop loop = strided({s.outer, s.m, s.inner},
                              {{line, s.inner, 1}, {line, s.inner, 1}, {s.n * s.inner, 0, 1}});
    list.push_back({text("gather", s),
                    {out(random(s.outer * line, 1), s.shift), index_of(s),
                     in(random(s.outer * s.n * s.inner, 2), s.shift)},
                    [=](const Place& p) {
                      p.table.gather({p.t, p[0], p.integers(1), p[2], loop, s.n, s.inner},
                                     p.stream);
                    }});
  }
  return list;
}

std::vector<Call> calls_of_scatter(DType t) {
  std::vector<Call> list;
  const double low = t == DType::uint8 ? 0 : -2;
  for (const bool add : {false, true})
    for (const Places& s : kPlaces) {
      const std::int64_t line = s.m * s.inner;
      const Loop lines = strided({s.outer, s.inner}, {{s.n * s.inner, 1}, {line, 1}, {line, 1}});
      // The output of a rejected call is not compared, but its error text is.
      list.push_back({text(add ? "scatter, added," : "scatter", s),
                      {out(random(s.outer * s.n * s.inner, 1, low, 3), s.shift), index_of(s),
                       in(random(s.outer * line, 2, low, 3), s.shift)},
                      [=](const Place& p) {
                        p.table.scatter({p.t, add, p[0], p.integers(1), p[2], lines, s.m, s.inner,
                                         s.inner, s.n, s.inner},
                                        p.stream);
                      }});
    }
  return list;
}

namespace {

struct Lines {
  std::int64_t outer, n, inner;
};

Call scan(braid::ScanOp op, const Lines& l, bool reverse, DType t) {
  using braid::ScanOp;
  const std::int64_t all = l.outer * l.n * l.inner;
  const double reach = !braid::is_floating(t) ? 9 : op == ScanOp::sum ? 2 : 1.05;
  Numbers numbers = random(all, 2, -reach, reach);
  // near 1, so that long products stay in the dtype's range
  if (op == ScanOp::prod && braid::is_floating(t))
    for (std::int64_t i = 0; i < all; ++i)
      numbers[i] = numbers[i] < 0 ? numbers[i] / 20 - 0.97 : numbers[i] / 20 + 0.97;
  return {braid::str("scan ", static_cast<int>(op), reverse ? " reversed" : "", ", [", l.outer,
                     ", ", l.n, ", ", l.inner, "]"),
          {out(random(all, 1), l.n % 2), in(numbers, l.n % 2),
           in(random(all, 3, -reach, reach), l.n % 2)},
          [=](const Place& p) {
            void* const a = op == ScanOp::recurrence ? p[2] : nullptr;
            p.table.scan({op, p.t, p[1], a, p[0], l.outer, l.n, l.inner, reverse}, p.stream);
          },
          // Computed in float64 and rounded once. The error is one float64 rounding of the
          // accumulated magnitude per step, plus the final rounding.
          [=](DType type, const Values& v) {
            Numbers bound(v[0].size());
            for (std::int64_t line = 0; line < l.outer * l.inner; ++line) {
              double size = op == ScanOp::prod ? 1 : 0;
              for (std::int64_t j = 0; j < l.n; ++j) {
                const std::int64_t at =
                    (line / l.inner * l.n + (reverse ? l.n - 1 - j : j)) * l.inner + line % l.inner;
                const double x = std::fabs(v[1][at]);
                size = op == ScanOp::sum    ? size + x
                       : op == ScanOp::prod ? size * x
                                            : std::fabs(v[2][at]) * size + x;
                bound[at] =
                    2 * 0x1p-53 * static_cast<double>(j + 4) * size + exactly(type, v[0][at]);
              }
            }
            return Values{bound};
          }};
}

}  // namespace

std::vector<Call> calls_of_scan(DType t) {
  std::vector<Call> list;
  for (const auto op : {braid::ScanOp::sum, braid::ScanOp::prod, braid::ScanOp::recurrence})
    for (const Lines& l : std::vector<Lines>{{1, 1, 1},
                                             {33, 31, 1},
                                             {3, 33, 1},
                                             {2, 1023, 1},
                                             {1, 2049, 1},
                                             {2, 129, 3},
                                             {2, 65, 33},
                                             {0, 5, 1},
                                             {3, 0, 2}})
      for (const bool reverse : {false, true}) list.push_back(scan(op, l, reverse, t));
  return list;
}

std::vector<Call> calls_of_sort(DType t) {
  std::vector<Call> list;
  struct Rows {
    std::int64_t rows, n, k;
  };
  for (const bool descending : {false, true})
    for (const Rows& r : std::vector<Rows>{{1, 1, 1},
                                           {5, 3, 3},
                                           {33, 31, 31},
                                           {7, 127, 127},
                                           {3, 129, 1},
                                           {2, 1024, 1024},
                                           {2, 1025, 1025},
                                           {1, 3000, 3000},
                                           {2, 2500, 7},
                                           {0, 5, 5}}) {
      Numbers x = random(r.rows * r.n, 3, t == DType::uint8 ? 0 : -9, 9);
      // Ties, NaN, infinities and both zeros.
      for (std::int64_t i = 0; i < x.size(); ++i) {
        if (i % 3 == 0) x[i] = std::trunc(x[i]);
        if (braid::is_floating(t) && i % 11 == 5)
          x[i] = i % 2 == 0 ? kNaN : i % 4 == 1 ? kInf : -kInf;
        if (braid::is_floating(t) && i % 13 == 2) x[i] = i % 2 == 0 ? -0.0 : 0.0;
      }
      list.push_back({braid::str("sort ", r.rows, " x ", r.n, ", first ", r.k,
                                 descending ? ", descending" : ""),
                      {out(random(r.rows * r.k, 1)),
                       out(random(r.rows * r.k, 2), 0, always(DType::int64)), in(x, r.n % 2)},
                      [=](const Place& p) {
                        p.table.sort({p.t, p[2], p[0], p.integers(1), r.rows, r.n, r.k, descending},
                                     p.stream);
                      }});
    }
  return list;
}

}  // namespace agreement
