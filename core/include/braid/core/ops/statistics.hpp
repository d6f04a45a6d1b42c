#pragma once
#include <concepts>
#include <initializer_list>

#include <braid/core/tensor.hpp>

// Variance, log-sum-exp and norms. They are composed of the reductions in reduce.hpp, and have the
// same rules.
namespace braid {

/// Returns the variance Σ (x - mean)² / max(0, n - correction). It is computed in two passes: first
/// the mean, then the squares. Correction 1 gives the unbiased estimate, 0 the biased one.
/// LibTorch's `unbiased` is accepted in its place: true is 1, false is 0.
///
/// Shapes    as sum
/// Types     floating point; float16 and bfloat16 are computed in float32 and rounded once
/// Gradient  dx = 2 (x - mean) dy / (n - correction)
/// Throws    DTypeError; IndexError; ShapeError for a dim named twice. Too few elements give NaN or
///           infinity, as in PyTorch
///
///     var(x, {0}, false);    // the biased variance, along dim 0
///     var(x, {0}, 0, true);  // the same, and keeps the dim
template <std::same_as<bool> Keep = bool>
[[nodiscard]] Tensor var(const Tensor& x, const IntList& dims = {}, double correction = 1,
                         Keep keepdim = false);
template <std::same_as<bool> Unbiased> [[nodiscard]] Tensor var(const Tensor& x, Unbiased unbiased);
/// Returns the square root of var. Its gradient is 0 where the result is 0.
template <std::same_as<bool> Keep = bool>
[[nodiscard]] Tensor std(const Tensor& x, const IntList& dims = {}, double correction = 1,
                         Keep keepdim = false);
template <std::same_as<bool> Unbiased> [[nodiscard]] Tensor std(const Tensor& x, Unbiased unbiased);
/// What var_mean returns.
struct VarMean {
  Tensor var, mean;
};
/// Returns var and the mean. The mean is computed only once.
template <std::same_as<bool> Keep = bool>
[[nodiscard]] VarMean var_mean(const Tensor& x, const IntList& dims = {}, double correction = 1,
                               Keep keepdim = false);

/// Returns log Σ exp(x), computed without overflow. Throws DTypeError unless x is floating point.
/// The result is -inf if all elements are -inf, and if there are none.
///
/// Gradient  dx = exp(x - y) dy
[[nodiscard]] Tensor logsumexp(const Tensor& x, const IntList& dims = {}, bool keepdim = false);

/// Returns the p-norm (Σ |x|^p)^(1/p). All elements along the dims count as one vector. p =
/// infinity gives the largest |x|, -infinity the smallest, and 0 the number of elements that are
/// not 0.
///
/// Types     floating point; float16 and bfloat16 are computed in float32 and rounded once
/// Gradient  dx = sign(x) |x|^(p-1) y^(1-p) dy. It is 0 where y is 0 and where x is 0. For p =
///           ±infinity it goes to the extreme element; equal ones get equal shares. p = 0 has none
/// Throws    DTypeError; IndexError; ShapeError for a dim named twice, and for p = ±infinity
///           without elements; ArgumentError if p is NaN
///
///     norm(x);          // the Euclidean length of all elements
///     norm(x, 1, {1});  // the sum of |x| of each row
[[nodiscard]] Tensor norm(const Tensor& x, double p = 2, const IntList& dims = {},
                          bool keepdim = false);
/// The same of x.to(dtype). The result has that dtype, inside of an Autocast too.
[[nodiscard]] Tensor norm(const Tensor& x, double p, const IntList& dims, bool keepdim,
                          DType dtype);
[[nodiscard]] Tensor norm(const Tensor& x, double p, DType dtype);
/// Deleted: in norm(x, {1}) the 1 could be p or a dim. Write norm(x, 1) or norm(x, 2, {1}).
Tensor norm(const Tensor& x, std::initializer_list<std::int64_t> p_or_dims,
            bool keepdim = false) = delete;

namespace detail {
// keepdim accepts only a bool: a number there would be a misplaced correction.
[[nodiscard]] Tensor var(const Tensor& x, const IntList& dims, double correction, bool keepdim);
[[nodiscard]] Tensor std(const Tensor& x, const IntList& dims, double correction, bool keepdim);
[[nodiscard]] VarMean var_mean(const Tensor& x, const IntList& dims, double correction,
                               bool keepdim);
}  // namespace detail

template <std::same_as<bool> Keep>
Tensor var(const Tensor& x, const IntList& dims, double correction, Keep keepdim) {
  return detail::var(x, dims, correction, keepdim);
}
template <std::same_as<bool> Unbiased> Tensor var(const Tensor& x, Unbiased unbiased) {
  return detail::var(x, {}, unbiased ? 1 : 0, false);
}
template <std::same_as<bool> Keep>
Tensor std(const Tensor& x, const IntList& dims, double correction, Keep keepdim) {
  return detail::std(x, dims, correction, keepdim);
}
template <std::same_as<bool> Unbiased> Tensor std(const Tensor& x, Unbiased unbiased) {
  return detail::std(x, {}, unbiased ? 1 : 0, false);
}
template <std::same_as<bool> Keep>
VarMean var_mean(const Tensor& x, const IntList& dims, double correction, Keep keepdim) {
  return detail::var_mean(x, dims, correction, keepdim);
}
template <std::same_as<bool> Unbiased> VarMean var_mean(const Tensor& x, Unbiased unbiased) {
  return detail::var_mean(x, {}, unbiased ? 1 : 0, false);
}

}  // namespace braid
