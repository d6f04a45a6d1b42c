#include <braid/core/internal/autocast.hpp>

#include <braid/core/error.hpp>

namespace braid {

Autocast::Autocast(DType dtype, bool enabled) : before_(thread_state().autocast) {
  if (!is_floating(dtype) || size_of(dtype) != 2)
    throw DTypeError(str("Autocast: expected float16 or bfloat16, got ", dtype));
  thread_state().autocast = enabled ? std::optional(dtype) : std::nullopt;
}

namespace detail {

Tensor Autocasted::operator()(const Tensor& t) const {
  if (!t.defined() || !is_floating(t.dtype()) || t.dtype() == DType::float64) return t;
  return t.to(dtype_);
}

Tensor in_full_precision(const Tensor& t) {
  if (!autocasting()) return t;
  return Autocasted(Precision::full)(t);
}

}  // namespace detail
}  // namespace braid
