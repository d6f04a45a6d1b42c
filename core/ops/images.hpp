#pragma once
// Shared by convolutions and pooling: images in the channels-last memory format.
#include <braid/core/tensor.hpp>

namespace braid::ops {

/// Returns the strides of [n, c, h, w] without gaps and with channels innermost in memory.
[[nodiscard]] inline Shape channels_last_strides(const Shape& s) noexcept {
  const auto size = [&](int d) { return s[d] > 1 ? s[d] : std::int64_t{1}; };
  return {size(2) * size(3) * size(1), 1, size(3) * size(1), size(1)};
}

/// Returns true for rank 4 and channels last in memory, without gaps. With one channel or one
/// pixel, contiguous tensors are channels last too.
[[nodiscard]] inline bool is_channels_last(const TensorImpl& t) noexcept {
  if (t.shape.rank() != 4) return false;
  const Shape want = channels_last_strides(t.shape);
  for (int d = 0; d < 4; ++d)
    if (t.shape[d] > 1 && t.strides[d] != want[d]) return false;
  return true;
}

/// Returns an uninitialised channels-last tensor. Not recorded.
[[nodiscard]] Tensor make_channels_last(const Shape& shape, DType dtype, Device device);

/// Returns a tensor for the result of an elementwise op on `like`: channels last if `like` is (and
/// is not contiguous), else contiguous.
[[nodiscard]] Tensor make_like(const TensorImpl& like, DType dtype);

}  // namespace braid::ops
