#pragma once
// Elementwise functions that are not recorded. The recorded ops of unary.cpp, binary.cpp,
// compare.cpp, lerp.cpp and where.cpp use them.
#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "common.hpp"

namespace braid::ops {

/// Computes f(x) in x's dtype.
[[nodiscard]] Tensor unary(const char* op, UnaryOp kind, const Tensor& x, double alpha = 0);
/// Computes a op b. Requires the same dtype and device for both.
[[nodiscard]] Tensor binary(const char* op, BinaryOp kind, const Tensor& a, const Tensor& b,
                            double alpha = 1);
/// Computes out = t op value, or value op t if `reversed`. out and t have the same shape; out may
/// be t. For integers, the value must be whole, and wraps around in their type.
void scalar_into(const char* op, BinaryOp kind, const Tensor& out, const Tensor& t,
                 const Scalar& value, bool reversed = false);
/// Computes t op value, or value op t if `reversed`.
[[nodiscard]] Tensor with_scalar(const char* op, BinaryOp kind, const Tensor& t,
                                 const Scalar& value, bool reversed = false);

/// Checks two operands and converts them to one device and dtype. Holds copies only if a conversion
/// is needed.
struct Pair {
  Pair(const char* op, const Tensor& x, const Tensor& y, bool floating = false);
  const Tensor *a, *b;
  Tensor held_a, held_b;
};

/// Converts x to the dtype of an op with the number, so that a number does not silently become
/// another one in an integer tensor.
[[nodiscard]] Tensor for_scalar(const Tensor& x, const Scalar& value);

/// Returns x. Throws DTypeError for bool, for which negation, absolute value etc. have no meaning.
const Tensor& numbers(const char* op, const Tensor& x);
/// Throws DeviceError unless beside() puts the tensors on one device, ShapeError unless they
/// broadcast.
void check_together(const char* op, std::initializer_list<const Tensor*> tensors);
/// Returns a gradient of zeros.
[[nodiscard]] inline Tensor zeros_as(const Tensor& dy) {
  return filled(dy.shape(), 0, dy.dtype(), dy.device());
}

/// Calls f(dtype), which consists of several ops. 16-bit types are computed in float32 and rounded
/// once, at the end.
template <class F> Tensor rounded_once(DType dtype, F f) {
  return is_floating(dtype) && size_of(dtype) == 2 ? f(DType::float32).to(dtype) : f(dtype);
}

}  // namespace braid::ops
