#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/kernel_args/loop.hpp>

// What the elementwise kernels are asked for: one result element for each element of the operands.
namespace braid {

// clang-format off
enum class UnaryOp : std::uint8_t {
  neg, abs, relu, exp, log, sqrt, rsqrt, tanh, sigmoid, sin, cos, reciprocal, square, sign,
  pow_scalar /* x^alpha */,
  exp2, expm1, log1p, log2, log10, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, erf,
  erfc, floor, ceil, round /* half to even */, trunc
};
// clang-format on
inline constexpr int kUnaryOpCount = static_cast<int>(UnaryOp::trunc) + 1;
/// The rarer ones, which have files of their own.
[[nodiscard]] constexpr bool is_function(UnaryOp op) noexcept { return op >= UnaryOp::exp2; }

/// out and x have `dtype`; floating point, and for neg, abs, relu, square, sign also integers.
struct UnaryArgs {
  UnaryOp op;
  DType dtype;
  void* out;
  const void* x;
  double alpha;
  Loop loop;
};

// clang-format off
enum class BinaryOp : std::uint8_t {
  add, sub, mul, div, maximum, minimum,
  relu_backward /* b <= 0 ? 0 : a */, tanh_backward /* a (1 - b²); floating */,
  sigmoid_backward /* a b (1 - b); floating */,
  pow, atan2 /* floating */, fmod /* sign of a */, remainder /* sign of b */, floor_divide,
  eq, ne, lt, le, gt, ge
};
// clang-format on
[[nodiscard]] constexpr bool is_comparison(BinaryOp op) noexcept { return op >= BinaryOp::eq; }
/// The rarer ones, which have files of their own. Not for bool; an integer divisor of 0 is an
/// error, as in div.
[[nodiscard]] constexpr bool is_function(BinaryOp op) noexcept {
  return op >= BinaryOp::pow && op <= BinaryOp::floor_divide;
}

/// What the error of a divisor 0 calls the op.
[[nodiscard]] constexpr const char* name_of_division(BinaryOp op) noexcept {
  switch (op) {
    case BinaryOp::fmod: return "fmod";
    case BinaryOp::remainder: return "remainder";
    case BinaryOp::floor_divide: return "floor_divide";
    default: return "div";
  }
}

/// out = a op b. a, b have `dtype`; out has it too, or bool for comparisons. A null a or b stands
/// for `scalar` (rounded to dtype first). add and sub: out = a ± alpha * b (alpha 1 costs nothing).
/// NaN: maximum and minimum propagate it. out may be a or b itself (same strides). Operands 1 = a,
/// 2 = b.
struct BinaryArgs {
  BinaryOp op;
  DType dtype;
  void* out;
  const void* a;
  const void* b;
  double scalar;
  double alpha;
  Loop loop;
};

/// out = where(condition (bool), a, b); operands 1 = condition, 2 = a, 3 = b.
struct WhereArgs {
  DType dtype;
  void* out;
  const void* condition;
  const void* a;
  const void* b;
  Loop loop;
};

/// out[to] = x[from], converting: float to integer truncates (out of range and NaN: unspecified
/// value, no trap), to bool is != 0. Same device.
struct CopyArgs {
  DType to, from;
  void* out;
  const void* x;
  Loop loop;
};

/// out = value; for int64, `integer` is exact.
struct FillArgs {
  DType dtype;
  void* out;
  double value;
  std::int64_t integer;
  Loop loop;
};

}  // namespace braid
