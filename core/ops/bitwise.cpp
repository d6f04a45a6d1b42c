// Functions of the bits of integers, and of bools. They have no gradients.
#include <braid/core/ops/bitwise.hpp>

#include <braid/core/ops/elementwise.hpp>

#include "map.hpp"

namespace braid {
namespace {

/// Returns the kernel's function for a dtype: a bool has those of truth values.
BinaryOp function_for(const char* op, BinaryOp kind, DType dtype) {
  const bool shifts = kind >= BinaryOp::bitwise_left_shift;
  if (is_floating(dtype) || (shifts && dtype == DType::bool_))
    throw DTypeError(str(op, ": expected integers", shifts ? "" : " or bools", ", got ", dtype));
  if (dtype != DType::bool_) return kind;
  return kind == BinaryOp::bitwise_and  ? BinaryOp::mul
         : kind == BinaryOp::bitwise_or ? BinaryOp::add
                                        : BinaryOp::ne;
}

Tensor of_bits(const char* op, BinaryOp kind, const Tensor& a, const Tensor& b) {
  const ops::Pair p(op, a, b);
  return ops::binary(op, function_for(op, kind, p.a->dtype()), *p.a, *p.b);
}
Tensor of_bits(const char* op, BinaryOp kind, const Tensor& x, const Scalar& value,
               bool reversed = false) {
  const DType dtype = promote(detail::defined(x.impl()).dtype, value);
  const BinaryOp function = function_for(op, kind, dtype);
  return ops::with_scalar(op, function, x.to(dtype), value, reversed);
}

}  // namespace

#define BRAID_OF_BITS(name)                                                                      \
  Tensor name(const Tensor& a, const Tensor& b) { return of_bits(#name, BinaryOp::name, a, b); } \
  Tensor name(const Tensor& a, const Scalar& b) { return of_bits(#name, BinaryOp::name, a, b); }
BRAID_OF_BITS(bitwise_and)
BRAID_OF_BITS(bitwise_or)
BRAID_OF_BITS(bitwise_xor)
BRAID_OF_BITS(bitwise_left_shift)
BRAID_OF_BITS(bitwise_right_shift)
#undef BRAID_OF_BITS

Tensor bitwise_left_shift(const Scalar& a, const Tensor& b) {
  return of_bits("bitwise_left_shift", BinaryOp::bitwise_left_shift, b, a, true);
}
Tensor bitwise_right_shift(const Scalar& a, const Tensor& b) {
  return of_bits("bitwise_right_shift", BinaryOp::bitwise_right_shift, b, a, true);
}

Tensor bitwise_not(const Tensor& x) {
  const DType dtype = detail::defined(x.impl()).dtype;
  if (dtype == DType::bool_) return logical_not(x);
  if (is_floating(dtype))
    throw DTypeError(str("bitwise_not: expected integers or bools, got ", dtype));
  return ops::with_scalar("bitwise_not", BinaryOp::sub, x, -1, true);
}

Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
Tensor operator&(const Tensor& a, const Scalar& b) { return bitwise_and(a, b); }
Tensor operator|(const Tensor& a, const Scalar& b) { return bitwise_or(a, b); }
Tensor operator^(const Tensor& a, const Scalar& b) { return bitwise_xor(a, b); }
Tensor operator&(const Scalar& a, const Tensor& b) { return bitwise_and(b, a); }
Tensor operator|(const Scalar& a, const Tensor& b) { return bitwise_or(b, a); }
Tensor operator^(const Scalar& a, const Tensor& b) { return bitwise_xor(b, a); }
Tensor operator~(const Tensor& x) { return bitwise_not(x); }
Tensor operator<<(const Tensor& a, const Tensor& b) { return bitwise_left_shift(a, b); }
Tensor operator>>(const Tensor& a, const Tensor& b) { return bitwise_right_shift(a, b); }
Tensor operator<<(const Tensor& a, const Scalar& b) { return bitwise_left_shift(a, b); }
Tensor operator>>(const Tensor& a, const Scalar& b) { return bitwise_right_shift(a, b); }

}  // namespace braid
