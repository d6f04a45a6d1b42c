#pragma once
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/matmul.hpp>
#include <braid/core/ops/shape.hpp>

// Second names that PyTorch has for functions of Braid. Each calls that function: shapes, dtypes,
// devices, gradients and errors are those of its documentation; the errors have its name.
namespace braid {

/// abs, neg, trunc, and the inverse functions asin, acos, atan, asinh, acosh, atanh and atan2.
[[nodiscard]] Tensor absolute(const Tensor& x);
[[nodiscard]] Tensor negative(const Tensor& x);
[[nodiscard]] Tensor fix(const Tensor& x);
[[nodiscard]] Tensor arcsin(const Tensor& x);
[[nodiscard]] Tensor arccos(const Tensor& x);
[[nodiscard]] Tensor arctan(const Tensor& x);
[[nodiscard]] Tensor arcsinh(const Tensor& x);
[[nodiscard]] Tensor arccosh(const Tensor& x);
[[nodiscard]] Tensor arctanh(const Tensor& x);
[[nodiscard]] Tensor arctan2(const Tensor& a, const Tensor& b);

/// sub
[[nodiscard]] Tensor subtract(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
[[nodiscard]] Tensor subtract(const Tensor& a, const Scalar& b);

/// mul, div, ne, lt, le, gt and ge, with a tensor or a number.
#define BRAID_ALIAS(alias)                                      \
  [[nodiscard]] Tensor alias(const Tensor& a, const Tensor& b); \
  [[nodiscard]] Tensor alias(const Tensor& a, const Scalar& b);
BRAID_ALIAS(multiply)
BRAID_ALIAS(divide)
BRAID_ALIAS(true_divide)
BRAID_ALIAS(not_equal)
BRAID_ALIAS(less)
BRAID_ALIAS(less_equal)
BRAID_ALIAS(greater)
BRAID_ALIAS(greater_equal)
#undef BRAID_ALIAS

/// div, rounded as the mode "floor" or "trunc" says.
[[nodiscard]] Tensor divide(const Tensor& a, const Tensor& b, std::string_view rounding_mode);
[[nodiscard]] Tensor divide(const Tensor& a, const Scalar& b, std::string_view rounding_mode);

/// x itself: Braid has no complex numbers, so there is nothing to conjugate.
[[nodiscard]] Tensor conj(const Tensor& x);
[[nodiscard]] Tensor conj_physical(const Tensor& x);
[[nodiscard]] Tensor resolve_conj(const Tensor& x);
[[nodiscard]] Tensor resolve_neg(const Tensor& x);

/// clamp, outer, movedim, transpose, split and cat.
[[nodiscard]] Tensor clip(const Tensor& x, const std::optional<Scalar>& min,
                          const std::optional<Scalar>& max = {});
[[nodiscard]] Tensor ger(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor moveaxis(const Tensor& x, const IntList& source, const IntList& destination);
[[nodiscard]] Tensor swapdims(const Tensor& x, std::int64_t a, std::int64_t b);
[[nodiscard]] std::vector<Tensor> split_with_sizes(const Tensor& x, const IntList& sizes,
                                                   std::int64_t dim = 0);
[[nodiscard]] Tensor concat(std::span<const Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor concat(std::initializer_list<Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor concatenate(std::span<const Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor concatenate(std::initializer_list<Tensor> tensors, std::int64_t dim = 0);

}  // namespace braid
