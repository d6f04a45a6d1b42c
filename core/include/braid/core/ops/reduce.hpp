#pragma once
#include <braid/core/ops/statistics.hpp>
#include <braid/core/tensor.hpp>

// Reductions. Those composed of several are in statistics.hpp. Empty `dims` means all dims. If x is
// a view that repeats its memory (expand), it may have at most 2^31 elements; more throw
// ArgumentError. Sums have a fixed order, whatever the number of threads. float16 and bfloat16
// accumulate in float32.
namespace braid {

/// The sum over the dims. Integers and bool give int64. The sum of nothing is 0.
///
/// Gradient  dy, expanded
///
///     sum(ones({2, 3}));             // 6
///     sum(ones({2, 3}), {0}, true);  // [1, 3]
[[nodiscard]] Tensor sum(const Tensor& x, const IntList& dims = {}, bool keepdim = false);
/// The same of x.to(dtype). The result has that dtype, inside of an Autocast too; sums of integers
/// wrap around in it.
[[nodiscard]] Tensor sum(const Tensor& x, const IntList& dims, bool keepdim, DType dtype);
[[nodiscard]] Tensor sum(const Tensor& x, DType dtype);
/// The mean over the dims. The mean of nothing is NaN.
///
/// Gradient  dy / n, expanded
/// Throws    DTypeError unless x is floating point
[[nodiscard]] Tensor mean(const Tensor& x, const IntList& dims = {}, bool keepdim = false);
/// The same of x.to(dtype).
[[nodiscard]] inline Tensor mean(const Tensor& x, const IntList& dims, bool keepdim, DType dtype) {
  return mean(x.to(dtype), dims, keepdim);
}
[[nodiscard]] inline Tensor mean(const Tensor& x, DType dtype) { return mean(x.to(dtype)); }
/// The largest element over the dims, and the smallest; NaN propagates.
///
/// Gradient  to the chosen element; equal ones get equal shares
/// Throws    ShapeError for the maximum and the minimum of nothing
///
///     amax(x, 1);               // of each row
///     amin(x, {0, 1}, true);    // of all, [1, 1]
[[nodiscard]] Tensor amax(const Tensor& x, const IntList& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor amin(const Tensor& x, const IntList& dims = {}, bool keepdim = false);
/// The same over all dims. max(x, dim) in sort.hpp gives the indices too; max(a, b) is maximum.
[[nodiscard]] Tensor max(const Tensor& x);
[[nodiscard]] Tensor min(const Tensor& x);
Tensor max(const Tensor& x, const IntList& dims, bool keepdim = false) = delete;  // write amax
Tensor min(const Tensor& x, const IntList& dims, bool keepdim = false) = delete;  // write amin
/// Index of the first largest element along dim, and of the first smallest, int64.
///
/// Gradient  none
[[nodiscard]] Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);
[[nodiscard]] Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// Over all elements: the index in row-major order.
[[nodiscard]] Tensor argmax(const Tensor& x);
[[nodiscard]] Tensor argmin(const Tensor& x);

/// any: true if at least one element is not 0. all: true if no element is 0. NaN is not 0. The
/// result is bool (PyTorch keeps uint8); of nothing, any is false and all is true.
///
/// Gradient  none
[[nodiscard]] Tensor any(const Tensor& x, const IntList& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor all(const Tensor& x, const IntList& dims = {}, bool keepdim = false);
/// The number of elements that are not 0, int64. No gradient. (PyTorch's has no keepdim.)
[[nodiscard]] Tensor count_nonzero(const Tensor& x, const IntList& dims = {}, bool keepdim = false);

}  // namespace braid
