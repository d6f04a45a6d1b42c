#pragma once
#include <concepts>
#include <initializer_list>

#include <braid/core/tensor.hpp>

// Reductions. Empty `dims` means all dims. If x is a view that repeats its memory (expand), it may
// have at most 2^31 elements; more throw ArgumentError. Sums have a fixed order, whatever the
// number of threads. float16 and bfloat16 accumulate in float32.
namespace braid {

/// Integers and bool give int64. The sum of nothing is 0. Gradient: dy, expanded.
[[nodiscard]] Tensor sum(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// Floating point only (DTypeError). The mean of nothing is NaN.
[[nodiscard]] Tensor mean(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// The largest element; NaN propagates. Equal largest elements get equal shares of the gradient.
/// Throws ShapeError for the maximum of nothing.
[[nodiscard]] Tensor max(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor min(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// Index of the first largest element along dim, int64; no gradient.
[[nodiscard]] Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);
[[nodiscard]] Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// Over all elements: the index in row-major order.
[[nodiscard]] Tensor argmax(const Tensor& x);
[[nodiscard]] Tensor argmin(const Tensor& x);

/// any: true if at least one element is not 0. all: true if no element is 0. NaN is not 0. The
/// result is bool (PyTorch keeps uint8); of nothing, any is false and all is true. No gradient.
[[nodiscard]] Tensor any(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor all(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// The number of elements that are not 0, int64. No gradient. (PyTorch's has no keepdim.)
[[nodiscard]] Tensor count_nonzero(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

/// The variance Σ (x - mean)² / max(0, n - correction), in two passes: first the mean, then the
/// squares.
///
/// Shapes    as sum; correction 1 gives the unbiased estimate, 0 the biased one. LibTorch's
///           `unbiased` is the same argument: false is 0, true is 1
/// Types     floating point; float16 and bfloat16 are computed in float32 and rounded once
/// Gradient  dx = 2 (x - mean) dy / (n - correction)
/// Throws    DTypeError; IndexError; ShapeError for a dim named twice. Too few elements give NaN or
///           infinity, as in PyTorch
///
///     var(x, {0}, false)    // the biased variance, along dim 0
///     var(x, {0}, 0, true)  // the same, and keeps the dim
template <std::same_as<bool> Keep = bool>
[[nodiscard]] Tensor var(const Tensor& x, const Shape& dims = {}, double correction = 1,
                         Keep keepdim = false);
template <std::same_as<bool> Unbiased> [[nodiscard]] Tensor var(const Tensor& x, Unbiased unbiased);
/// The square root of var. The gradient is 0 where the result is 0.
template <std::same_as<bool> Keep = bool>
[[nodiscard]] Tensor std(const Tensor& x, const Shape& dims = {}, double correction = 1,
                         Keep keepdim = false);
template <std::same_as<bool> Unbiased> [[nodiscard]] Tensor std(const Tensor& x, Unbiased unbiased);
struct VarMean {
  Tensor var, mean;
};
template <std::same_as<bool> Keep = bool>
[[nodiscard]] VarMean var_mean(const Tensor& x, const Shape& dims = {}, double correction = 1,
                               Keep keepdim = false);

/// log Σ exp(x), without overflow. Floating point only (DTypeError). The result is -inf for
/// nothing, and where all elements are -inf. Gradient dx = exp(x - y) dy.
[[nodiscard]] Tensor logsumexp(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

/// The p-norm (Σ |x|^p)^(1/p) of all elements of the dims, taken as one vector. p = infinity gives
/// the largest |x|, -infinity the smallest, 0 the number of elements that are not 0.
///
/// Types     floating point; float16 and bfloat16 are computed in float32 and rounded once
/// Gradient  dx = sign(x) |x|^(p-1) y^(1-p) dy, 0 where y is 0 and, for p < 1, where x is 0; equal
///           extreme elements (p = ±infinity) share it; none for p = 0
/// Throws    DTypeError; IndexError; ShapeError for a dim named twice, and for p = ±infinity of
///           nothing; ArgumentError if p is NaN
[[nodiscard]] Tensor norm(const Tensor& x, double p = 2, const Shape& dims = {},
                          bool keepdim = false);
/// Deleted: in norm(x, {1}) the 1 could be p or a dim. Write norm(x, 1) or norm(x, 2, {1}).
Tensor norm(const Tensor& x, std::initializer_list<std::int64_t> p_or_dims,
            bool keepdim = false) = delete;

namespace detail {
// keepdim accepts only a bool: a number there would be a misplaced correction.
[[nodiscard]] Tensor var(const Tensor& x, const Shape& dims, double correction, bool keepdim);
[[nodiscard]] Tensor std(const Tensor& x, const Shape& dims, double correction, bool keepdim);
[[nodiscard]] VarMean var_mean(const Tensor& x, const Shape& dims, double correction, bool keepdim);
}  // namespace detail

template <std::same_as<bool> Keep>
Tensor var(const Tensor& x, const Shape& dims, double correction, Keep keepdim) {
  return detail::var(x, dims, correction, keepdim);
}
template <std::same_as<bool> Unbiased> Tensor var(const Tensor& x, Unbiased unbiased) {
  return detail::var(x, {}, unbiased ? 1 : 0, false);
}
template <std::same_as<bool> Keep>
Tensor std(const Tensor& x, const Shape& dims, double correction, Keep keepdim) {
  return detail::std(x, dims, correction, keepdim);
}
template <std::same_as<bool> Unbiased> Tensor std(const Tensor& x, Unbiased unbiased) {
  return detail::std(x, {}, unbiased ? 1 : 0, false);
}
template <std::same_as<bool> Keep>
VarMean var_mean(const Tensor& x, const Shape& dims, double correction, Keep keepdim) {
  return detail::var_mean(x, dims, correction, keepdim);
}

}  // namespace braid
