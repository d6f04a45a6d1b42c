#pragma once
#include <braid/core/tensor.hpp>

// Reductions. `dims` empty: over all. Sums have a fixed order, whatever the number of threads. float16 and bfloat16 accumulate in float32.
namespace braid {

/// Integers and bool give int64. Empty: 0. Gradient: dy, expanded.
[[nodiscard]] Tensor sum(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// Floating point only (DTypeError). Empty: NaN.
[[nodiscard]] Tensor mean(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// Largest; NaN propagates. The gradient is shared evenly among equal largest elements. Throws ShapeError for an empty reduction.
[[nodiscard]] Tensor max(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor min(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// Index of the first largest element along dim, int64; no gradient.
[[nodiscard]] Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);
[[nodiscard]] Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);

}  // namespace braid
