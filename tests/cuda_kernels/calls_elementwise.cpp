// Calls of unary, binary, where, copy and fill.
#include <braid/core/kernel_args/activation.hpp>
#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda_kernels/every_kernel.hpp"

namespace agreement {

using braid::BinaryOp;
using braid::UnaryOp;

namespace {

constexpr const char* kUnary[] = {
    "neg",   "abs",   "relu",       "exp",    "log",   "sqrt", "rsqrt", "tanh",  "sigmoid",
    "sin",   "cos",   "reciprocal", "square", "sign",  "pow",  "exp2",  "expm1", "log1p",
    "log2",  "log10", "tan",        "asin",   "acos",  "atan", "sinh",  "cosh",  "asinh",
    "acosh", "atanh", "erf",        "erfc",   "floor", "ceil", "round", "trunc"};
static_assert(std::size(kUnary) == braid::kUnaryOpCount);
constexpr const char* kBinary[] = {"add",
                                   "sub",
                                   "mul",
                                   "div",
                                   "maximum",
                                   "minimum",
                                   "relu_backward",
                                   "tanh_backward",
                                   "sigmoid_backward",
                                   "pow",
                                   "atan2",
                                   "fmod",
                                   "remainder",
                                   "floor_divide",
                                   "eq",
                                   "ne",
                                   "lt",
                                   "le",
                                   "gt",
                                   "ge"};
static_assert(std::size(kBinary) == static_cast<std::size_t>(BinaryOp::ge) + 1);
constexpr const char* kActivations[] = {
    "gelu",  "gelu_tanh",   "silu",      "softplus", "elu",        "leaky_relu", "hardtanh",
    "clamp", "hardsigmoid", "hardswish", "mish",     "logsigmoid", "softsign"};
static_assert(std::size(kActivations) == braid::kActivationCount);

/// What integers hold too, with a few values more than once.
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
/// Where a function is defined and moderate.
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

std::vector<Call<braid::UnaryArgs>> calls_of(Of<braid::UnaryArgs>, DType t) {
  std::vector<Call<braid::UnaryArgs>> list;
  for (int i = 0; i < braid::kUnaryOpCount; ++i) {
    const auto op = static_cast<UnaryOp>(i);
    const auto [low, high] = range(op, t);
    for (const Walk& w : walks())
      list.push_back(
          {braid::str("unary ", kUnary[i], ", ", w.name),
           {out(for_operand(w, 0, 1), w.shift), in(for_operand(w, 1, 2, low, high), w.shift)},
           [op, w](DType type, const std::vector<void*>& at) {
             return braid::UnaryArgs{
                 .op = op, .dtype = type, .out = at[0], .x = at[1], .alpha = 1.7, .loop = w.loop};
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
    const bool divides =
        op == BinaryOp::div || (is_function(op) && op != BinaryOp::pow && op != BinaryOp::atan2);
    const bool rounds_twice = op == BinaryOp::pow || op == BinaryOp::atan2 ||
                              op == BinaryOp::tanh_backward || op == BinaryOp::sigmoid_backward;
    list.push_back(
        {braid::str("binary ", kBinary[static_cast<int>(op)], ", ", w.name,
                    null_operand > 0 ? ", a number for operand " : "",
                    null_operand > 0 ? braid::str(null_operand) : "", alpha != 1 ? ", alpha" : ""),
         {out(for_operand(w, 0, 1), w.shift,
              braid::is_comparison(op) ? always(DType::bool_) : nullptr),
          in(for_operand(w, 1, 2, op == BinaryOp::pow ? 0.1 : -reach(t), reach(t)), w.shift),
          in(for_operand(w, 2, 3, divides ? 1 : -reach(t), reach(t)), w.shift)},
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
    // A comparison is the CPU's bit for bit; so is what integers do. a + alpha * b in one rounding
    // or in two: both are within a rounding of each term.
    if (!braid::is_comparison(op))
      list.back().bound = [=](DType type, const std::vector<Numbers>& v) {
        return std::vector<Numbers>{along(w, v[0].size(), [&](std::int64_t k) {
          const double y = v[0][static_cast<std::size_t>(offset(w.loop, 0, k))];
          // b in a gradient is an output that may be near 1: the difference is off by a rounding of
          // b² or b, times a.
          if (op == BinaryOp::tanh_backward || op == BinaryOp::sigmoid_backward)
            return rounding(type) * 40 + last(type, y);
          if (rounds_twice)
            return (size_of(type) == 2 ? 1 : type == DType::float64 ? 8 : 4) * ulp(type, y);
          if (alpha == 1) return exactly(type, y);
          const double b =
              null_operand == 2 ? 3 : v[2][static_cast<std::size_t>(offset(w.loop, 2, k))];
          return rounding(type) * (std::fabs(alpha * b) + std::fabs(y)) + last(type, y);
        })};
      };
  };
  for (int i = 0; i <= static_cast<int>(BinaryOp::ge); ++i)
    for (const Walk& w : walks()) add(static_cast<BinaryOp>(i), w, 0, 1);
  for (const Walk& w : walks()) {
    for (const int operand : {1, 2})
      for (const BinaryOp op :
           {BinaryOp::sub, BinaryOp::div, BinaryOp::gt, BinaryOp::pow, BinaryOp::remainder})
        add(op, w, operand, 1);
    if (t != DType::bool_ && t != DType::uint8)
      add(BinaryOp::add, w, 0, -2), add(BinaryOp::sub, w, 0, 3);
  }
  return list;
}

std::vector<Call<braid::WhereArgs>> calls_of(Of<braid::WhereArgs>, DType t) {
  std::vector<Call<braid::WhereArgs>> list;
  for (const Walk& w : walks())
    list.push_back({"where, " + w.name,
                    {out(for_operand(w, 0, 1), w.shift),
                     in(for_operand(w, 1, 2, -1, 2), w.shift, always(DType::uint8)),
                     in(for_operand(w, 2, 3, -reach(t), reach(t)), w.shift),
                     in(for_operand(w, 3, 4, -reach(t), reach(t)), w.shift)},
                    [w](DType type, const std::vector<void*>& at) {
                      return braid::WhereArgs{.dtype = type,
                                              .out = at[0],
                                              .condition = at[1],
                                              .a = at[2],
                                              .b = at[3],
                                              .loop = w.loop};
                    },
                    nullptr});
  // Conditions are bool: 0 or 1.
  for (auto& call : list) {
    for (double& c : call.operands[1].numbers) c = c > 0.5 ? 1 : 0;
    call.operands[1].type = always(DType::bool_);
  }
  return list;
}

std::vector<Call<braid::ActivationArgs>> calls_of(Of<braid::ActivationArgs>, DType) {
  std::vector<Call<braid::ActivationArgs>> list;
  for (int i = 0; i < braid::kActivationCount; ++i)
    for (const bool backward : {false, true})
      for (const Walk& w : walks()) {
        const auto op = static_cast<braid::ActivationOp>(i);
        // Bounds, or the numbers of softplus and elu, inside the range of x.
        const bool bounds = op == braid::ActivationOp::hardtanh || op == braid::ActivationOp::clamp;
        const double a = bounds ? -1 : 0.75, b = 1.25, c = 1.5;
        list.push_back(
            {braid::str("activation ", kActivations[i], backward ? " backward, " : ", ", w.name),
             {out(for_operand(w, 0, 1), w.shift), in(for_operand(w, 1, 2, -5, 5), w.shift),
              in(for_operand(w, 2, 3), w.shift)},
             [=](DType type, const std::vector<void*>& at) {
               return braid::ActivationArgs{.op = op,
                                            .dtype = type,
                                            .out = at[0],
                                            .x = at[1],
                                            .dy = backward ? at[2] : nullptr,
                                            .a = a,
                                            .b = b,
                                            .c = c,
                                            .loop = w.loop};
             },
             // Terms of a size up to x or dy, some roundings each.
             [=](DType type, const std::vector<Numbers>& v) {
               return std::vector<Numbers>{along(w, v[0].size(), [&](std::int64_t k) {
                 const double y = v[0][static_cast<std::size_t>(offset(w.loop, 0, k))],
                              x = v[1][static_cast<std::size_t>(offset(w.loop, 1, k))];
                 return rounding(type) * 16 * (1 + std::fabs(x)) + last(type, y);
               })};
             }});
      }
  return list;
}

std::vector<Call<braid::CopyArgs>> calls_of(Of<braid::CopyArgs>, DType t) {
  std::vector<Call<braid::CopyArgs>> list;
  for (const DType from : kAll)
    for (const Walk& w : walks())
      list.push_back({braid::str("copy from ", braid::name_of(from), ", ", w.name),
                      {out(for_operand(w, 0, 1, 0, 2), w.shift),
                       in(for_operand(w, 1, 2, 0, 100), w.shift, always(from))},
                      [=](DType type, const std::vector<void*>& at) {
                        return braid::CopyArgs{
                            .to = type, .from = from, .out = at[0], .x = at[1], .loop = w.loop};
                      },
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
                        return braid::FillArgs{.dtype = type,
                                               .out = at[0],
                                               .value = value,
                                               .integer = static_cast<std::int64_t>(value),
                                               .loop = w.loop};
                      },
                      nullptr});
  (void)t;
  return list;
}

}  // namespace agreement
