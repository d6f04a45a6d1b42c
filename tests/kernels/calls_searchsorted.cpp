#include <braid/core/internal/kernel_args/searchsorted.hpp>

#include <algorithm>

#include "kernels/calls.hpp"

namespace agreement {

std::vector<Call> calls_of_searchsorted(DType t) {
  if (t == DType::bool_) return {};
  std::vector<Call> list;
  struct Rows {
    std::int64_t rows, m, n, step;
  };
  for (const bool right : {false, true})
    for (const Rows& r : std::vector<Rows>{{1, 1, 1, 0},
                                           {1, 33, 7, 0},
                                           {3, 31, 127, 0},
                                           {5, 129, 64, 64},
                                           {2, 5000, 1025, 1025},
                                           {7, 3, 0, 0},
                                           {0, 5, 5, 5}}) {
      const std::int64_t sequences = r.step == 0 ? 1 : r.rows;
      Numbers sequence = random(sequences * r.n, 3, t == DType::uint8 ? 0 : -9, 9),
              values = random(r.rows * r.m, 4, t == DType::uint8 ? 0 : -10, 10);
      // Ties, NaN, infinities and both zeros.
      for (std::int64_t i = 0; i < values.size(); ++i) {
        if (i % 3 == 0) values[i] = std::trunc(values[i]);
        if (braid::is_floating(t) && i % 11 == 5)
          values[i] = i % 2 == 0 ? kNaN : i % 4 == 1 ? kInf : -kInf;
      }
      for (std::int64_t row = 0; row < sequences; ++row) {
        std::vector<double> line;
        for (std::int64_t i = 0; i < r.n; ++i)
          line.push_back(i % 2 == 0 ? std::trunc(sequence[row * r.n + i])
                                    : sequence[row * r.n + i]);
        std::sort(line.begin(), line.end());
        for (std::int64_t i = 0; i < r.n; ++i)
          sequence[row * r.n + i] = line[static_cast<std::size_t>(i)];
      }
      list.push_back(
          {braid::str("searchsorted ", r.rows, " x ", r.m, " in ", r.n, right ? ", right" : ""),
           {out(random(r.rows * r.m, 2), 0, always(DType::int64)), in(sequence, r.n % 2),
            in(values, r.m % 2)},
           [=](const Place& p) {
             p.table.searchsorted({p.t, p[1], p[2], p.integers(0), r.rows, r.m, r.n, r.step, right},
                                  p.stream);
           }});
    }
  return list;
}

}  // namespace agreement
