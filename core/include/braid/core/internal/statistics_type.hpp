#pragma once
#include <braid/core/dtype.hpp>

namespace braid {

/// Returns the dtype of what is computed from many elements, such as means and norms: float32 for
/// float16 and bfloat16, else the dtype itself.
[[nodiscard]] constexpr DType statistics_type(DType t) noexcept {
  return t == DType::float64 ? t : DType::float32;
}

}  // namespace braid
