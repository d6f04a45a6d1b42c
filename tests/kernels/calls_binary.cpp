#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/calls.hpp"

namespace agreement {

using braid::BinaryOp;

namespace {

constexpr BinaryOp kOps[] = {
#define BRAID_BINARY(name) BinaryOp::name,
#define BRAID_BINARY_FUNCTION(name) BinaryOp::name,
#define BRAID_BINARY_FLOATING(name, c) BinaryOp::name,
#define BRAID_BINARY_DIVISION(name) BinaryOp::name,
#define BRAID_BINARY_INTEGER(name) BinaryOp::name,
#define BRAID_BINARY_COMPARISON(name) BinaryOp::name,
#include <braid/core/internal/binary.def>
};

Call binary(BinaryOp op, const Walk& w, int null_operand, double alpha, DType t) {
  Call call{
      braid::str("binary ", static_cast<int>(op), ", ", w.name,
                 null_operand > 0 ? ", a number for operand " : "",
                 null_operand > 0 ? braid::str(null_operand) : "", alpha != 1 ? ", alpha" : ""),
      {w.result(braid::is_comparison(op) ? always(DType::bool_) : nullptr),
       w.operand(1, op == BinaryOp::pow ? 0.1 : -reach(t), reach(t)),
       w.operand(2, is_division(op) ? 1 : -reach(t), reach(t))},
      [=](const Place& p) {
        p.table.binary({op, p.t, p[0], null_operand == 1 ? nullptr : p[1],
                        null_operand == 2 ? nullptr : p[2], 3, alpha, w.loop},
                       p.stream);
      }};
  // Comparisons and integer results must match the CPU bit for bit. a + alpha * b may be rounded
  // once or twice: both are within one rounding of each term.
  if (!braid::is_comparison(op))
    call.bound = along(w, [=](DType type, const Values& v, std::int64_t k) {
      const double y = v[0][offset(w.loop, 0, k)];
      // In a gradient, b is an output that may be near 1. The difference is off by a rounding of b²
      // or b, times a.
      if (op == BinaryOp::tanh_backward || op == BinaryOp::sigmoid_backward)
        return rounding(type) * 40 + last(type, y);
      if (op == BinaryOp::pow || is_floating_function(op)) return four_ulp(type, y);
      if (alpha == 1) return exactly(type, y);
      const double b = null_operand == 2 ? 3 : v[2][offset(w.loop, 2, k)];
      return rounding(type) * (std::fabs(alpha * b) + std::fabs(y)) + last(type, y);
    });
  return call;
}

}  // namespace

std::vector<Call> calls_of_binary(DType t) {
  std::vector<Call> list;
  for (const Walk& w : walks()) {
    for (const BinaryOp op : kOps) list.push_back(binary(op, w, 0, 1, t));
    for (const int operand : {1, 2})
      for (const BinaryOp op :
           {BinaryOp::sub, BinaryOp::div, BinaryOp::gt, BinaryOp::pow, BinaryOp::remainder})
        list.push_back(binary(op, w, operand, 1, t));
    if (t == DType::bool_ || t == DType::uint8) continue;
    list.push_back(binary(BinaryOp::add, w, 0, -2, t));
    list.push_back(binary(BinaryOp::sub, w, 0, 3, t));
  }
  return list;
}

}  // namespace agreement
