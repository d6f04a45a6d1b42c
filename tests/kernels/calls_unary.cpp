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
    case UnaryOp::sign:
#define BRAID_UNARY_STEP(name, c) case UnaryOp::name:
#include <braid/core/internal/unary.def>
      return true;
    default: return false;
  }
}

/// A range in which a function is defined and moderate.
enum class Domain { everywhere, positive, unit, above_one };
std::pair<double, double> range(Domain domain, DType t) {
  switch (domain) {
    case Domain::positive: return {0.05, 2 * reach(t)};
    case Domain::unit: return {-0.95, 0.95};
    case Domain::above_one: return {1.1, 5};
    default: return {-2 * reach(t), 2 * reach(t)};
  }
}

struct Unary {
  const char* name;
  UnaryOp op;
  Domain domain;
};
constexpr Unary kUnary[] = {
#define BRAID_UNARY(name, domain) {#name, UnaryOp::name, Domain::domain},
#define BRAID_UNARY_FUNCTION(name, c, domain) {#name, UnaryOp::name, Domain::domain},
#define BRAID_UNARY_STEP(name, c) {#name, UnaryOp::name, Domain::everywhere},
#include <braid/core/internal/unary.def>
};

}  // namespace

std::vector<Call> calls_of_unary(DType t) {
  std::vector<Call> list;
  for (const Unary& f : kUnary) {
    const UnaryOp op = f.op;
    const auto [low, high] = range(f.domain, t);
    // 3: computed by products, without a logarithm
    for (const double alpha :
         op == UnaryOp::pow_scalar ? std::vector<double>{1.7, 3} : std::vector<double>{1.7})
      for (const Walk& w : walks())
        list.push_back(
            {braid::str("unary ", f.name, ", ", w.name, alpha == 3 ? ", alpha 3" : ""),
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
