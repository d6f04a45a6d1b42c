#pragma once
#include <braid/core/tensor_impl.hpp>

namespace braid::ops {

/// Returns false if several elements share one location in memory: for an expanded tensor, and for
/// a view whose strides overlap. An op in place refuses such a tensor.
[[nodiscard]] bool has_own_elements(const Shape& shape, const Shape& strides) noexcept;
[[nodiscard]] inline bool has_own_elements(const TensorImpl& t) noexcept {
  return t.contiguous || t.numel < 2 || has_own_elements(t.shape, t.strides);
}

}  // namespace braid::ops
