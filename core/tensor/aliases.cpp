// PyTorch's second names, and the members with a _ as functions.
#include <braid/core/ops/aliases.hpp>

#include <braid/core/ops/composed.hpp>
#include <braid/core/ops/in_place.hpp>

namespace braid {

#define BRAID_REST(...) __VA_OPT__(, ) __VA_ARGS__
#define BRAID_WITHOUT_FIRST(first, ...) (__VA_ARGS__)
#define BRAID_IN_PLACE(name, parameters, arguments)          \
  Tensor name##_(const Tensor& self BRAID_REST parameters) { \
    return self.name##_ BRAID_WITHOUT_FIRST arguments;       \
  }
#include <braid/core/internal/members.def>
#undef BRAID_REST
#undef BRAID_WITHOUT_FIRST
Tensor relu_(const Tensor& x) { return x.relu_(); }
Tensor zero_(const Tensor& x) { return x.zero_(); }
Tensor fill_(const Tensor& x, const Scalar& value) { return x.fill_(value); }
Tensor clamp_(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  return x.clamp_(min, max);
}

#define BRAID_ALIAS(alias, name)                                        \
  Tensor alias(const Tensor& a, const Tensor& b) { return name(a, b); } \
  Tensor alias(const Tensor& a, const Scalar& b) { return name(a, b); }
Tensor divide(const Tensor& a, const Tensor& b, std::string_view rounding_mode) {
  return div(a, b, rounding_mode);
}
Tensor divide(const Tensor& a, const Scalar& b, std::string_view rounding_mode) {
  return div(a, b, rounding_mode);
}
Tensor conj(const Tensor& x) { return x; }
Tensor conj_physical(const Tensor& x) { return x; }
Tensor resolve_conj(const Tensor& x) { return x; }
Tensor resolve_neg(const Tensor& x) { return x; }
BRAID_ALIAS(multiply, mul)
BRAID_ALIAS(divide, div)
BRAID_ALIAS(true_divide, div)
BRAID_ALIAS(not_equal, ne)
BRAID_ALIAS(less, lt)
BRAID_ALIAS(less_equal, le)
BRAID_ALIAS(greater, gt)
BRAID_ALIAS(greater_equal, ge)
#undef BRAID_ALIAS
Tensor absolute(const Tensor& x) { return abs(x); }
Tensor negative(const Tensor& x) { return neg(x); }
Tensor fix(const Tensor& x) { return trunc(x); }
Tensor arcsin(const Tensor& x) { return asin(x); }
Tensor arccos(const Tensor& x) { return acos(x); }
Tensor arctan(const Tensor& x) { return atan(x); }
Tensor arcsinh(const Tensor& x) { return asinh(x); }
Tensor arccosh(const Tensor& x) { return acosh(x); }
Tensor arctanh(const Tensor& x) { return atanh(x); }
Tensor arctan2(const Tensor& a, const Tensor& b) { return atan2(a, b); }
Tensor subtract(const Tensor& a, const Tensor& b, const Scalar& alpha) { return sub(a, b, alpha); }
Tensor subtract(const Tensor& a, const Scalar& b) { return sub(a, b); }
Tensor clip(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  return clamp(x, min, max);
}
Tensor ger(const Tensor& a, const Tensor& b) { return outer(a, b); }
Tensor moveaxis(const Tensor& x, const IntList& source, const IntList& destination) {
  return movedim(x, source, destination);
}
Tensor swapdims(const Tensor& x, std::int64_t a, std::int64_t b) { return swapaxes(x, a, b); }
std::vector<Tensor> split_with_sizes(const Tensor& x, const IntList& sizes, std::int64_t dim) {
  return split(x, sizes, dim);
}
Tensor concat(std::span<const Tensor> tensors, std::int64_t dim) { return cat(tensors, dim); }
Tensor concat(std::initializer_list<Tensor> tensors, std::int64_t dim) { return cat(tensors, dim); }
Tensor concatenate(std::span<const Tensor> tensors, std::int64_t dim) { return cat(tensors, dim); }
Tensor concatenate(std::initializer_list<Tensor> tensors, std::int64_t dim) {
  return cat(tensors, dim);
}

}  // namespace braid
