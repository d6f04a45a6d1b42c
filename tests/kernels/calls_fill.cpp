#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/calls.hpp"

namespace agreement {

std::vector<Call> calls_of_fill(DType) {
  std::vector<Call> list;
  for (const std::int64_t value : {0, 1, 37})
    for (const Walk& w : walks())
      list.push_back({braid::str("fill with ", value, ", ", w.name),
                      {out(w.numbers(0, 1, 0, 2), w.shift)},
                      [=](const Place& p) {
                        p.table.fill({p.t, p[0], static_cast<double>(value), value, w.loop},
                                     p.stream);
                      }});
  return list;
}

}  // namespace agreement
