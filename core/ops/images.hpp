#pragma once
// What convolutions and pooling share: images that lie in memory channels last.
#include <braid/core/tensor.hpp>

namespace braid::ops {

/// Strides of a dense [n, c, h, w] whose channels are innermost in memory.
[[nodiscard]] inline Shape channels_last_strides(const Shape& s) noexcept {
  const auto size = [&](int d) { return s[d] > 1 ? s[d] : std::int64_t{1}; };
  return {size(2) * size(3) * size(1), 1, size(3) * size(1), size(1)};
}

/// True for rank 4 and channels last in memory, without gaps. Both orders are the same where there
/// is one channel, or one place.
[[nodiscard]] inline bool is_channels_last(const TensorImpl& t) noexcept {
  if (t.shape.rank() != 4) return false;
  const Shape want = channels_last_strides(t.shape);
  for (int d = 0; d < 4; ++d)
    if (t.shape[d] > 1 && t.strides[d] != want[d]) return false;
  return true;
}

/// Uninitialised, without history.
[[nodiscard]] Tensor make_channels_last(const Shape& shape, DType dtype, Device device);

/// A tensor for the result of an elementwise op on `like`: channels last if that one is, else
/// row-major.
[[nodiscard]] Tensor make_like(const TensorImpl& like, DType dtype);

}  // namespace braid::ops
