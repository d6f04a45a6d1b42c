// Calls of unary, binary, where, activation, copy and fill.
#include <braid/core/kernel_args/activation.hpp>
#include <braid/core/kernel_args/elementwise.hpp>

#include "kernels/calls.hpp"

namespace agreement {

using braid::BinaryOp;
using braid::UnaryOp;

namespace {

/// Returns the range of random numbers: small for integers, so that they fit and some values
/// repeat.
double reach(DType t) { return braid::is_floating(t) ? 2 : 9; }

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

namespace {

Call binary(BinaryOp op, const Walk& w, int null_operand, double alpha, DType t) {
  const bool divides =
      op == BinaryOp::div || (is_function(op) && op != BinaryOp::pow && op != BinaryOp::atan2);
  Call call{
      braid::str("binary ", static_cast<int>(op), ", ", w.name,
                 null_operand > 0 ? ", a number for operand " : "",
                 null_operand > 0 ? braid::str(null_operand) : "", alpha != 1 ? ", alpha" : ""),
      {w.result(braid::is_comparison(op) ? always(DType::bool_) : nullptr),
       w.operand(1, op == BinaryOp::pow ? 0.1 : -reach(t), reach(t)),
       w.operand(2, divides ? 1 : -reach(t), reach(t))},
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
      if (op == BinaryOp::pow || op == BinaryOp::atan2) return four_ulp(type, y);
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
    for (int i = 0; i <= static_cast<int>(BinaryOp::ge); ++i)
      list.push_back(binary(static_cast<BinaryOp>(i), w, 0, 1, t));
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
