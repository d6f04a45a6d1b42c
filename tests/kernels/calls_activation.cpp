#include <braid/core/internal/kernel_args/activation.hpp>

#include "kernels/calls.hpp"

namespace agreement {

std::vector<Call> calls_of_activation(DType) {
  std::vector<Call> list;
  for (int i = 0; i < braid::kActivationCount; ++i)
    for (const bool backward : {false, true})
      for (const Walk& w : walks()) {
        const auto op = static_cast<braid::ActivationOp>(i);
        // The bounds, or the parameters of softplus and elu, lie inside the range of x.
        const bool bounds = op == braid::ActivationOp::hardtanh || op == braid::ActivationOp::clamp;
        const double a = bounds ? -1 : 0.75;
        list.push_back(
            {braid::str("activation ", i, backward ? " backward, " : ", ", w.name),
             {w.result(), w.operand(1, -5, 5), w.operand(2, -2, 2)},
             [=](const Place& p) {
               void* const dy = backward ? p[2] : nullptr;
               p.table.activation({op, p.t, p[0], p[1], dy, a, 1.25, 1.5, w.loop}, p.stream);
             },
             // A few roundings each of terms of magnitude up to x or dy.
             along(w, [=](DType type, const Values& v, std::int64_t k) {
               const double y = v[0][offset(w.loop, 0, k)], x = v[1][offset(w.loop, 1, k)];
               return rounding(type) * 16 * (1 + std::fabs(x)) + last(type, y);
             })});
      }
  return list;
}

}  // namespace agreement
