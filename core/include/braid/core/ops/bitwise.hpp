#pragma once
#include <braid/core/tensor.hpp>

// Functions of the bits of integers. Shapes broadcast, dtypes are promoted, and tensors on two
// devices throw DeviceError, as in binary.hpp. Floating-point tensors and numbers throw DTypeError.
// None has a gradient. For a bool, "and", "or", "xor" and "not" are the logical ones.
namespace braid {

/// The bits that a and b both have, that one of them has, and that exactly one of them has. The
/// operators &, | and ^ are the same.
///
///     const Tensor inside = (x > 0) & (x < 1), odd = tokens & 1;
[[nodiscard]] Tensor bitwise_and(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor bitwise_or(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor bitwise_xor(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor bitwise_and(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor bitwise_or(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor bitwise_xor(const Tensor& a, const Scalar& b);
[[nodiscard]] inline Tensor bitwise_and(const Scalar& a, const Tensor& b) {
  return bitwise_and(b, a);
}
[[nodiscard]] inline Tensor bitwise_or(const Scalar& a, const Tensor& b) {
  return bitwise_or(b, a);
}
[[nodiscard]] inline Tensor bitwise_xor(const Scalar& a, const Tensor& b) {
  return bitwise_xor(b, a);
}
/// All bits inverted: -1 - x, or logical_not for bool. The operator ~ is the same.
[[nodiscard]] Tensor bitwise_not(const Tensor& x);
/// a 2^b, which wraps around, and ⌊a / 2^b⌋. If b is negative or at least the number of bits, all
/// bits of a are shifted out: the result is 0, or for a negative a shifted right -1. The operators
/// << and >> are the same. bool throws DTypeError.
[[nodiscard]] Tensor bitwise_left_shift(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor bitwise_right_shift(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor bitwise_left_shift(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor bitwise_right_shift(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor bitwise_left_shift(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor bitwise_right_shift(const Scalar& a, const Tensor& b);

[[nodiscard]] Tensor operator&(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator|(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator^(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator&(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator|(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator^(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator&(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator|(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator^(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator~(const Tensor& x);
[[nodiscard]] Tensor operator<<(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator>>(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator<<(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator>>(const Tensor& a, const Scalar& b);

}  // namespace braid
