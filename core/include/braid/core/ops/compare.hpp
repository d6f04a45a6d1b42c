#pragma once
#include <braid/core/tensor.hpp>

// Comparisons, and logic on their results. Shapes broadcast, dtypes are promoted, and tensors on
// two devices throw DeviceError, as in binary.hpp. A number is compared exactly with the elements
// of an integer or bool tensor: 1 < 3e9 is true in int32 too. For a floating-point tensor, the
// number is first rounded to the tensor's dtype.
namespace braid {

/// Comparisons return bool and have no gradient.
///
///     const Tensor right = eq(logits.argmax(1), labels).to(DType::float32).mean();
[[nodiscard]] Tensor eq(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor ne(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor lt(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor le(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor gt(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor ge(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor eq(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor ne(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor lt(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor le(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor gt(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor ge(const Tensor& a, const Scalar& b);
[[nodiscard]] inline Tensor eq(const Scalar& a, const Tensor& b) { return eq(b, a); }
[[nodiscard]] inline Tensor ne(const Scalar& a, const Tensor& b) { return ne(b, a); }
[[nodiscard]] inline Tensor lt(const Scalar& a, const Tensor& b) { return gt(b, a); }
[[nodiscard]] inline Tensor le(const Scalar& a, const Tensor& b) { return ge(b, a); }
[[nodiscard]] inline Tensor gt(const Scalar& a, const Tensor& b) { return lt(b, a); }
[[nodiscard]] inline Tensor ge(const Scalar& a, const Tensor& b) { return le(b, a); }

/// The operators are the same. `if (a == b)` does not compare whole tensors: it throws unless there
/// is one element (Tensor::operator bool). Use equal(a, b), and a.is_same(b) for two handles.
[[nodiscard]] Tensor operator==(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator!=(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator<(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator<=(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator>(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator>=(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor operator==(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator!=(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator<(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator<=(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator>(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator>=(const Tensor& a, const Scalar& b);
[[nodiscard]] Tensor operator==(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator!=(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator<(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator<=(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator>(const Scalar& a, const Tensor& b);
[[nodiscard]] Tensor operator>=(const Scalar& a, const Tensor& b);

/// The logical ops accept any dtype: 0 is false, everything else (also NaN) is true. They return
/// bool and have no gradient.
[[nodiscard]] Tensor logical_and(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor logical_or(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor logical_xor(const Tensor& a, const Tensor& b);

/// Returns true if |a - b| <= atol + rtol |b| for all elements. An infinity is close only to
/// itself. NaN is close to nothing.
///
/// Shapes    a and b broadcast
/// Throws    ShapeError; DeviceError for two devices
[[nodiscard]] bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
                            double atol = 1e-8);
/// Returns true if shapes, dtypes and elements are equal. NaN differs from itself.
///
/// Throws    DeviceError for two devices
[[nodiscard]] bool equal(const Tensor& a, const Tensor& b);

}  // namespace braid
