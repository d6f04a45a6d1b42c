#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/kernel_args/loop.hpp>

// Arguments of the elementwise kernels: one result element for each element of the operands.
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
/// The less common ops, which are in separate source files.
[[nodiscard]] constexpr bool is_function(UnaryOp op) noexcept { return op >= UnaryOp::exp2; }

/// out and x have `dtype`: floating point; for neg, abs, relu, square and sign also integers.
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
/// The less common ops, which are in separate source files. Not for bool. An integer divisor of 0
/// is an error, as in div.
[[nodiscard]] constexpr bool is_function(BinaryOp op) noexcept {
  return op >= BinaryOp::pow && op <= BinaryOp::floor_divide;
}

/// The name of the op in the error for a divisor of 0.
[[nodiscard]] constexpr const char* name_of_division(BinaryOp op) noexcept {
  switch (op) {
    case BinaryOp::fmod: return "fmod";
    case BinaryOp::remainder: return "remainder";
    case BinaryOp::floor_divide: return "floor_divide";
    default: return "div";
  }
}

/// out = a op b. a and b have `dtype`, and so has out, except for comparisons, where it is bool.
/// Where a or b is null, `scalar` is used (first rounded to dtype). add and sub:
/// out = a ± alpha * b (alpha 1 costs nothing). maximum and minimum propagate NaN. out may be a or
/// b (same strides). Operands of the loop: 1 = a, 2 = b.
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

/// out = where(condition (bool), a, b). Operands of the loop: 1 = condition, 2 = a, 3 = b.
struct WhereArgs {
  DType dtype;
  void* out;
  const void* condition;
  const void* a;
  const void* b;
  Loop loop;
};

/// Converts x, of dtype `from`, to out, of dtype `to`, on one device. Float to integer truncates
/// (out of range and NaN: unspecified value, no trap); to bool is x != 0.
struct CopyArgs {
  DType to, from;
  void* out;
  const void* x;
  Loop loop;
};

/// out = value; for int64 the exact value is `integer`.
struct FillArgs {
  DType dtype;
  void* out;
  double value;
  std::int64_t integer;
  Loop loop;
};

}  // namespace braid
