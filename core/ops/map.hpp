#pragma once
// Elementwise values without history: what the recorded ops of unary.cpp, binary.cpp, functions.cpp
// and choose.cpp are made of.
#include <braid/core/kernel_args/elementwise.hpp>

#include "common.hpp"

namespace braid::ops {

/// f(x), of x's dtype.
[[nodiscard]] Tensor unary(const char* op, UnaryOp kind, const Tensor& x, double alpha = 0);
/// a op b; both of one dtype and device.
[[nodiscard]] Tensor binary(const char* op, BinaryOp kind, const Tensor& a, const Tensor& b,
                            double alpha = 1);
/// out = t op value, or value op t where `reversed`, both of one shape; out may be t. Beside
/// integers the value is whole, and wraps around in their type.
void scalar_into(const char* op, BinaryOp kind, const Tensor& out, const Tensor& t,
                 const Scalar& value, bool reversed = false);
/// t op value, or value op t where `reversed`.
[[nodiscard]] Tensor with_scalar(const char* op, BinaryOp kind, const Tensor& t,
                                 const Scalar& value, bool reversed = false);

/// Both operands brought to one dtype and checked. Holds copies only where a conversion is needed.
struct Pair {
  Pair(const char* op, const Tensor& x, const Tensor& y, bool floating = false);
  const Tensor *a, *b;
  Tensor held_a, held_b;
};

/// x in the dtype in which it is computed with the number: a number must not silently become
/// another one in an integer tensor.
[[nodiscard]] Tensor for_scalar(const Tensor& x, const Scalar& value);
/// Compares the numbers themselves, also where x's integers cannot hold the value: 1 < 3e9 in int32
/// too.
[[nodiscard]] Tensor compared(const char* op, BinaryOp kind, const Tensor& x, const Scalar& value);

/// Negation, absolute value and the like have no meaning for bool: throws DTypeError.
const Tensor& numbers(const char* op, const Tensor& x);
/// Throws DeviceError, or ShapeError, unless the tensors are on one device and broadcast.
void check_together(const char* op, std::initializer_list<const Tensor*> tensors);
/// A gradient of zeros.
[[nodiscard]] inline Tensor zeros_as(const Tensor& dy) {
  return filled(dy.shape(), 0, dy.dtype(), dy.device());
}

}  // namespace braid::ops
