#include <braid/core/body.hpp>

namespace braid::detail {

void replace_body(const Tensor& into, const Tensor& from) noexcept {
  TensorImpl& to = *into.impl();
  const TensorImpl& of = *from.impl();
  to.shape = of.shape;
  to.strides = of.strides;
  to.offset = of.offset;
  to.numel = of.numel;
  // so that a SavedTensor of the old values detects the change
  of.storage->raise_version(to.storage->version() + 1);
  to.storage = of.storage;
  to.dtype = of.dtype;
  to.device = of.device;
  to.is_view = of.is_view;
  to.has_views.store(of.has_views.load(std::memory_order_relaxed), std::memory_order_relaxed);
  to.contiguous = of.contiguous;
}

}  // namespace braid::detail
