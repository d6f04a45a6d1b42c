#include <braid/core/internal/kernel_args/softmax.hpp>

#include "kernels/calls.hpp"
#include "kernels/rows.hpp"

namespace agreement {

namespace {

/// With the longest rows that a CUDA block holds: of one operand, and of two.
std::vector<Rows> rows_of_softmax() {
  // beside the longest rows of each kernel
  std::vector<Rows> all{{1, 16384, 0}, {1, 32768, 0}, {2, 33001, 1}, {1, 65536, 0}, {1, 66048, 0}};
  all.insert(all.end(), row_lists().begin(), row_lists().end());
  return all;
}

}  // namespace

std::vector<Call> calls_of_softmax(DType) {
  std::vector<Call> list;
  for (const bool log : {false, true})
    for (const Rows& r : rows_of_softmax())
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
    for (const Rows& r : rows_of_softmax())
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

}  // namespace agreement
