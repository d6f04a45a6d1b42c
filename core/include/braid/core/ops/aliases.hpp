#pragma once
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/matmul.hpp>
#include <braid/core/ops/shape.hpp>

// Second names that PyTorch has for functions of Braid. Each is the function that it calls.
namespace braid {

[[nodiscard]] inline Tensor absolute(const Tensor& x) { return abs(x); }
[[nodiscard]] inline Tensor negative(const Tensor& x) { return neg(x); }
[[nodiscard]] inline Tensor fix(const Tensor& x) { return trunc(x); }
[[nodiscard]] inline Tensor arcsin(const Tensor& x) { return asin(x); }
[[nodiscard]] inline Tensor arccos(const Tensor& x) { return acos(x); }
[[nodiscard]] inline Tensor arctan(const Tensor& x) { return atan(x); }
[[nodiscard]] inline Tensor arcsinh(const Tensor& x) { return asinh(x); }
[[nodiscard]] inline Tensor arccosh(const Tensor& x) { return acosh(x); }
[[nodiscard]] inline Tensor arctanh(const Tensor& x) { return atanh(x); }
[[nodiscard]] inline Tensor arctan2(const Tensor& a, const Tensor& b) { return atan2(a, b); }

[[nodiscard]] inline Tensor subtract(const Tensor& a, const Tensor& b, const Scalar& alpha = 1) {
  return sub(a, b, alpha);
}
[[nodiscard]] inline Tensor subtract(const Tensor& a, const Scalar& b) { return sub(a, b); }

#define BRAID_ALIAS(alias, name)                                                             \
  [[nodiscard]] inline Tensor alias(const Tensor& a, const Tensor& b) { return name(a, b); } \
  [[nodiscard]] inline Tensor alias(const Tensor& a, const Scalar& b) { return name(a, b); }
BRAID_ALIAS(multiply, mul)
BRAID_ALIAS(divide, div)
BRAID_ALIAS(true_divide, div)
BRAID_ALIAS(not_equal, ne)
BRAID_ALIAS(less, lt)
BRAID_ALIAS(less_equal, le)
BRAID_ALIAS(greater, gt)
BRAID_ALIAS(greater_equal, ge)
#undef BRAID_ALIAS

[[nodiscard]] inline Tensor clip(const Tensor& x, const std::optional<Scalar>& min,
                                 const std::optional<Scalar>& max = {}) {
  return clamp(x, min, max);
}
[[nodiscard]] inline Tensor ger(const Tensor& a, const Tensor& b) { return outer(a, b); }
[[nodiscard]] inline Tensor moveaxis(const Tensor& x, const IntList& source,
                                     const IntList& destination) {
  return movedim(x, source, destination);
}
[[nodiscard]] inline Tensor swapdims(const Tensor& x, std::int64_t a, std::int64_t b) {
  return swapaxes(x, a, b);
}
[[nodiscard]] inline std::vector<Tensor> split_with_sizes(const Tensor& x, const IntList& sizes,
                                                          std::int64_t dim = 0) {
  return split(x, sizes, dim);
}
[[nodiscard]] inline Tensor concat(std::span<const Tensor> tensors, std::int64_t dim = 0) {
  return cat(tensors, dim);
}
[[nodiscard]] inline Tensor concat(std::initializer_list<Tensor> tensors, std::int64_t dim = 0) {
  return cat(tensors, dim);
}
[[nodiscard]] inline Tensor concatenate(std::span<const Tensor> tensors, std::int64_t dim = 0) {
  return cat(tensors, dim);
}
[[nodiscard]] inline Tensor concatenate(std::initializer_list<Tensor> tensors,
                                        std::int64_t dim = 0) {
  return cat(tensors, dim);
}

}  // namespace braid
