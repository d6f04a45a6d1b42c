#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/calls.hpp"

namespace agreement {

std::vector<Call> calls_of_copy(DType) {
  std::vector<Call> list;
  for (const DType from : kAll)
    for (const Walk& w : walks())
      list.push_back(
          {braid::str("copy from ", from, ", ", w.name),
           {out(w.numbers(0, 1, 0, 2), w.shift),
            in(w.numbers(1, 2, 0, 100), w.shift, always(from))},
           [=](const Place& p) { p.table.copy({p.t, from, p[0], p[1], w.loop}, p.stream); }});
  return list;
}

}  // namespace agreement
