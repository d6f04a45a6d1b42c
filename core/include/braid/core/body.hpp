#pragma once
#include <braid/core/tensor.hpp>

namespace braid::detail {

/// Gives the tensor `into` the numbers, shape, dtype and device of `from`, sharing from's storage:
/// every handle of `into` sees them.
/// Its identity, flags (requires_grad, tied, is_replica) and gradient stay. The storage is another
/// one, so that what is cached by storage id is found stale;
/// its version is higher than the old one's, so that a backward which saved the old numbers says
/// so.
/// `into` must be a leaf; its views keep the old storage.
void replace_body(const Tensor& into, const Tensor& from) noexcept;

}  // namespace braid::detail
