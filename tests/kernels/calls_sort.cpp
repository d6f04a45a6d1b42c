#include <braid/core/internal/kernel_args/sort.hpp>

#include "kernels/calls.hpp"

namespace agreement {

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
