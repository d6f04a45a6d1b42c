#include <braid/core/internal/kernel_args/activation.hpp>

#include "core/op_cases_activation.hpp"
#include "kernels/calls.hpp"

namespace agreement {

namespace {

struct Activation {
  const char* name;
  braid::ActivationOp op;
};
constexpr Activation kActivations[] = {
#define BRAID_ACTIVATION(name) {#name, braid::ActivationOp::name},
#include <braid/core/internal/activation.def>
};

}  // namespace

std::vector<Call> calls_of_activation(DType) {
  std::vector<Call> list;
  for (const Activation& f : kActivations) {
    const braid::test::ActivationCall& with = braid::test::activation_call(f.op);
    for (const bool backward : {false, true})
      for (const Walk& w : walks())
        list.push_back(
            {braid::str("activation ", f.name, backward ? " backward, " : ", ", w.name),
             {w.result(), w.operand(1, -5, 5), w.operand(2, -2, 2)},
             [=, &with](const Place& p) {
               void* const dy = backward ? p[2] : nullptr;
               p.table.activation({f.op, p.t, p[0], p[1], dy, with.a, with.b, with.c, w.loop},
                                  p.stream);
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
