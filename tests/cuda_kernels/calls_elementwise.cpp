// Calls of unary, binary, where, copy and fill.
#include "cuda_kernels/every_kernel.hpp"

namespace agreement {

using braid::BinaryOp;
using braid::UnaryOp;

namespace {

constexpr const char* kUnary[] = {"neg", "abs", "relu", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "sin", "cos", "reciprocal", "square", "sign", "pow"};
constexpr const char* kBinary[] = {"add", "sub", "mul", "div", "maximum", "minimum", "relu_backward", "eq", "ne", "lt", "le", "gt", "ge"};

bool rounded_exactly(UnaryOp op) {
  switch (op) {
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::relu:
    case UnaryOp::sqrt:
    case UnaryOp::reciprocal:
    case UnaryOp::square:
    case UnaryOp::sign:
      return true;
    default:
      return false;
  }
}

/// What integers hold too, with a few values more than once.
double reach(DType t) { return braid::is_floating(t) ? 2 : 9; }

}  // namespace

std::vector<Call<braid::UnaryArgs>> calls_of(Of<braid::UnaryArgs>, DType t) {
  std::vector<Call<braid::UnaryArgs>> list;
  for (int i = 0; i <= static_cast<int>(UnaryOp::pow_scalar); ++i) {
    const auto op = static_cast<UnaryOp>(i);
    const bool positive = op == UnaryOp::log || op == UnaryOp::sqrt || op == UnaryOp::rsqrt || op == UnaryOp::reciprocal || op == UnaryOp::pow_scalar;
    for (const Walk& w : walks())
      list.push_back({braid::str("unary ", kUnary[i], ", ", w.name),
                      {out(for_operand(w, 0, 1), w.shift), in(for_operand(w, 1, 2, positive ? 0.05 : -2 * reach(t), 2 * reach(t)), w.shift)},
                      [op, w](DType type, const std::vector<void*>& at) {
                        return braid::UnaryArgs{.op = op, .dtype = type, .out = at[0], .x = at[1], .alpha = 1.7, .loop = w.loop};
                      },
                      [op, w](DType type, const std::vector<Numbers>& v) {
                        return std::vector<Numbers>{along(w, v[0].size(), [&](std::int64_t k) {
                          const double y = v[0][static_cast<std::size_t>(offset(w.loop, 0, k))];
                          if (rounded_exactly(op)) return exactly(type, y);
                          return (size_of(type) == 2 ? 1 : type == DType::float64 ? 8 : 4) * ulp(type, y);
                        })};
                      }});
  }
  return list;
}

std::vector<Call<braid::BinaryArgs>> calls_of(Of<braid::BinaryArgs>, DType t) {
  std::vector<Call<braid::BinaryArgs>> list;
  const auto add = [&](BinaryOp op, const Walk& w, int null_operand, double alpha) {
    const bool divides = op == BinaryOp::div;
    list.push_back({braid::str("binary ", kBinary[static_cast<int>(op)], ", ", w.name, null_operand > 0 ? ", a number for operand " : "",
                               null_operand > 0 ? braid::str(null_operand) : "", alpha != 1 ? ", alpha" : ""),
                    {out(for_operand(w, 0, 1), w.shift, braid::is_comparison(op) ? always(DType::bool_) : nullptr),
                     in(for_operand(w, 1, 2, -reach(t), reach(t)), w.shift), in(for_operand(w, 2, 3, divides ? 1 : -reach(t), reach(t)), w.shift)},
                    [=](DType type, const std::vector<void*>& at) {
                      return braid::BinaryArgs{.op = op,
                                               .dtype = type,
                                               .out = at[0],
                                               .a = null_operand == 1 ? nullptr : at[1],
                                               .b = null_operand == 2 ? nullptr : at[2],
                                               .scalar = 3,
                                               .alpha = alpha,
                                               .loop = w.loop};
                    },
                    nullptr});
    // A comparison is the CPU's bit for bit; so is what integers do. a + alpha * b in one rounding or in two: both are within a rounding of each term.
    if (!braid::is_comparison(op))
      list.back().bound = [=](DType type, const std::vector<Numbers>& v) {
        return std::vector<Numbers>{along(w, v[0].size(), [&](std::int64_t k) {
          const double y = v[0][static_cast<std::size_t>(offset(w.loop, 0, k))];
          if (alpha == 1) return exactly(type, y);
          const double b = null_operand == 2 ? 3 : v[2][static_cast<std::size_t>(offset(w.loop, 2, k))];
          return rounding(type) * (std::fabs(alpha * b) + std::fabs(y)) + last(type, y);
        })};
      };
  };
  for (int i = 0; i <= static_cast<int>(BinaryOp::ge); ++i)
    for (const Walk& w : walks()) add(static_cast<BinaryOp>(i), w, 0, 1);
  for (const Walk& w : walks()) {
    for (const int operand : {1, 2})
      for (const BinaryOp op : {BinaryOp::sub, BinaryOp::div, BinaryOp::gt}) add(op, w, operand, 1);
    if (t != DType::bool_ && t != DType::uint8) add(BinaryOp::add, w, 0, -2), add(BinaryOp::sub, w, 0, 3);
  }
  return list;
}

std::vector<Call<braid::WhereArgs>> calls_of(Of<braid::WhereArgs>, DType t) {
  std::vector<Call<braid::WhereArgs>> list;
  for (const Walk& w : walks())
    list.push_back({"where, " + w.name,
                    {out(for_operand(w, 0, 1), w.shift), in(for_operand(w, 1, 2, -1, 2), w.shift, always(DType::uint8)),
                     in(for_operand(w, 2, 3, -reach(t), reach(t)), w.shift), in(for_operand(w, 3, 4, -reach(t), reach(t)), w.shift)},
                    [w](DType type, const std::vector<void*>& at) {
                      return braid::WhereArgs{.dtype = type, .out = at[0], .condition = at[1], .a = at[2], .b = at[3], .loop = w.loop};
                    },
                    nullptr});
  // Conditions are bool: 0 or 1.
  for (auto& call : list) {
    for (double& c : call.operands[1].numbers) c = c > 0.5 ? 1 : 0;
    call.operands[1].type = always(DType::bool_);
  }
  return list;
}

std::vector<Call<braid::CopyArgs>> calls_of(Of<braid::CopyArgs>, DType t) {
  std::vector<Call<braid::CopyArgs>> list;
  for (const DType from : kAll)
    for (const Walk& w : walks())
      list.push_back(
          {braid::str("copy from ", braid::name_of(from), ", ", w.name),
           {out(for_operand(w, 0, 1, 0, 2), w.shift), in(for_operand(w, 1, 2, 0, 100), w.shift, always(from))},
           [=](DType type, const std::vector<void*>& at) { return braid::CopyArgs{.to = type, .from = from, .out = at[0], .x = at[1], .loop = w.loop}; },
           nullptr});
  (void)t;
  return list;
}

std::vector<Call<braid::FillArgs>> calls_of(Of<braid::FillArgs>, DType t) {
  std::vector<Call<braid::FillArgs>> list;
  for (const double value : {0.0, 1.0, 37.0})
    for (const Walk& w : walks())
      list.push_back({braid::str("fill with ", value, ", ", w.name),
                      {out(for_operand(w, 0, 1, 0, 2), w.shift)},
                      [=](DType type, const std::vector<void*>& at) {
                        return braid::FillArgs{.dtype = type, .out = at[0], .value = value, .integer = static_cast<std::int64_t>(value), .loop = w.loop};
                      },
                      nullptr});
  (void)t;
  return list;
}

}  // namespace agreement
