#include "images.hpp"

namespace braid::ops {

Tensor make_channels_last(const Shape& shape, DType dtype, Device device) {
  Tensor t = make_tensor(shape, dtype, device);
  TensorImpl& body = *t.id();
  const Shape strides = channels_last_strides(shape);
  if (shape.numel() == 0) return t;
  for (int d = 0; d < 4; ++d)
    if (shape[d] > 1 && strides[d] != body.strides[d]) body.contiguous = false;
  body.strides = strides;
  return t;
}

Tensor make_like(const TensorImpl& like, DType dtype) {
  if (like.contiguous || !is_channels_last(like))
    return make_tensor(like.shape, dtype, like.device);
  return make_channels_last(like.shape, dtype, like.device);
}

}  // namespace braid::ops
