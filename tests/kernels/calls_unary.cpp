#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/calls.hpp"

namespace agreement {

using braid::UnaryOp;

namespace {

bool rounded_exactly(UnaryOp op) {
  switch (op) {
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::relu:
    case UnaryOp::sqrt:
    case UnaryOp::reciprocal:
    case UnaryOp::square:
    case UnaryOp::sign: return true;
    default: return op >= UnaryOp::floor;
  }
}
/// Returns a range in which the function is defined and moderate.
std::pair<double, double> range(UnaryOp op, DType t) {
  switch (op) {
    case UnaryOp::log:
    case UnaryOp::sqrt:
    case UnaryOp::rsqrt:
    case UnaryOp::reciprocal:
    case UnaryOp::pow_scalar:
    case UnaryOp::log2:
    case UnaryOp::log10: return {0.05, 2 * reach(t)};
    case UnaryOp::log1p:
    case UnaryOp::asin:
    case UnaryOp::acos:
    case UnaryOp::atanh: return {-0.95, 0.95};
    case UnaryOp::acosh: return {1.1, 5};
    default: return {-2 * reach(t), 2 * reach(t)};
  }
}

}  // namespace

std::vector<Call> calls_of_unary(DType t) {
  std::vector<Call> list;
  for (int i = 0; i < braid::kUnaryOpCount; ++i) {
    const auto op = static_cast<UnaryOp>(i);
    const auto [low, high] = range(op, t);
    // 3: computed by products, without a logarithm
    for (const double alpha :
         op == UnaryOp::pow_scalar ? std::vector<double>{1.7, 3} : std::vector<double>{1.7})
      for (const Walk& w : walks())
        list.push_back(
            {braid::str("unary ", i, ", ", w.name, alpha == 3 ? ", alpha 3" : ""),
             {w.result(), w.operand(1, low, high)},
             [=](const Place& p) { p.table.unary({op, p.t, p[0], p[1], alpha, w.loop}, p.stream); },
             along(w, [=](DType type, const Values& v, std::int64_t k) {
               const double y = v[0][offset(w.loop, 0, k)];
               return rounded_exactly(op) ? exactly(type, y) : four_ulp(type, y);
             })});
  }
  return list;
}

}  // namespace agreement
