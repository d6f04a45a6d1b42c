#pragma once
#include <braid/core/tensor.hpp>

namespace braid::detail {

/// Gives the tensor `into` the values, shape, dtype and device of `from`, whose storage it then
/// shares. All handles of `into` see the change. The identity, flags (requires_grad, tied,
/// is_replica) and gradient of `into` stay. The storage id changes, so caches that use it detect
/// the change. The version of the new storage is raised above the old one's, so that a backward
/// that saved the old values throws. `into` must be a leaf. Its views keep the old storage.
void replace_body(const Tensor& into, const Tensor& from) noexcept;

}  // namespace braid::detail
