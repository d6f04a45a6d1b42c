#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/calls.hpp"

namespace agreement {

std::vector<Call> calls_of_where(DType t) {
  std::vector<Call> list;
  for (const Walk& w : walks()) {
    Numbers conditions = w.numbers(1, 2, -1, 2);
    for (std::int64_t i = 0; i < conditions.size(); ++i) conditions[i] = conditions[i] > 0.5;
    list.push_back(
        {"where, " + w.name,
         {w.result(), in(conditions, w.shift, always(DType::bool_)),
          w.operand(2, -reach(t), reach(t)), w.operand(3, -reach(t), reach(t))},
         [=](const Place& p) { p.table.where({p.t, p[0], p[1], p[2], p[3], w.loop}, p.stream); }});
  }
  return list;
}

}  // namespace agreement
