#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/internal/kernel_args/loop.hpp>

// Arguments of the elementwise kernels: one result element for each element of the operands.
namespace braid {

enum class UnaryOp : std::uint8_t {
#define BRAID_UNARY(name, domain) name,
#define BRAID_UNARY_FUNCTION(name, c, domain) name,
#define BRAID_UNARY_STEP(name, c) name,
#include <braid/core/internal/unary.def>
};
/// The less common ops, which share kernels.
[[nodiscard]] constexpr bool is_function(UnaryOp op) noexcept { return op > UnaryOp::pow_scalar; }

/// out and x have `dtype`: floating point; for neg, abs, relu, square and sign also integers.
struct UnaryArgs {
  UnaryOp op;
  DType dtype;
  void* out;
  const void* x;
  double alpha;
  Loop loop;
};

enum class BinaryOp : std::uint8_t {
#define BRAID_BINARY(name) name,
#define BRAID_BINARY_FUNCTION(name) name,
#define BRAID_BINARY_FLOATING(name, c) name,
#define BRAID_BINARY_DIVISION(name) name,
#define BRAID_BINARY_INTEGER(name) name,
#define BRAID_BINARY_COMPARISON(name) name,
#include <braid/core/internal/binary.def>
};
[[nodiscard]] constexpr bool is_comparison(BinaryOp op) noexcept { return op >= BinaryOp::eq; }
/// The ops that compute with a number as it is. A 16-bit dtype may not hold it: x / 70000.
[[nodiscard]] constexpr bool keeps_scalar(BinaryOp op) noexcept {
  return op == BinaryOp::add || op == BinaryOp::sub || op == BinaryOp::mul || op == BinaryOp::div;
}
/// The less common ops, which share kernels. Not for bool.
[[nodiscard]] constexpr bool is_function(BinaryOp op) noexcept {
  return op >= BinaryOp::pow && op < BinaryOp::eq;
}
/// Those of them that are for floating-point numbers only.
[[nodiscard]] constexpr bool is_floating_function(BinaryOp op) noexcept {
  switch (op) {
#define BRAID_BINARY_FLOATING(name, c) case BinaryOp::name:
#include <braid/core/internal/binary.def>
    return true;
    default: return false;
  }
}

/// Those of them that are for integers only.
[[nodiscard]] constexpr bool is_integer_function(BinaryOp op) noexcept {
  return op >= BinaryOp::bitwise_and && op < BinaryOp::eq;
}
/// Those for which an integer divisor of 0 is an error.
[[nodiscard]] constexpr bool is_division(BinaryOp op) noexcept {
  return op == BinaryOp::div || (op >= BinaryOp::fmod && op <= BinaryOp::floor_divide);
}

/// The name of the op in the error for a divisor of 0.
[[nodiscard]] constexpr const char* name_of_division(BinaryOp op) noexcept {
  switch (op) {
#define BRAID_BINARY_DIVISION(name) \
  case BinaryOp::name: return #name;
#include <braid/core/internal/binary.def>
    default: return "div";
  }
}

/// out = a op b. a and b have `dtype`, and so has out, except for comparisons, where it is bool.
/// Where a or b is null, `scalar` is used: for keeps_scalar(op) in the type of the computation,
/// else rounded to dtype first. add and sub: out = a ± alpha * b (alpha 1 costs nothing). maximum
/// and minimum propagate NaN. out may be a or b (same strides). Operands of the loop: 1 = a, 2 = b.
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
