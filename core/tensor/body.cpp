#include <braid/core/internal/body.hpp>

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
  to.view_kind = of.view_kind;
  to.settled = of.settled;
  to.base = of.base;
  if (of.base) to.history.store(of.history.load(std::memory_order_relaxed));
  to.contiguous = of.contiguous;
}

}  // namespace braid::detail
