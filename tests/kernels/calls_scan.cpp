#include <braid/core/internal/kernel_args/scan.hpp>

#include "kernels/calls.hpp"

namespace agreement {

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
                                             {1, 8192, 1},
                                             {2, 8193, 1},
                                             {1, 20001, 2},
                                             {0, 5, 1},
                                             {3, 0, 2}})
      for (const bool reverse : {false, true}) list.push_back(scan(op, l, reverse, t));
  return list;
}

}  // namespace agreement
