#pragma once
#include <cstddef>

#include <braid/core/autograd.hpp>

namespace braid::parallel {

/// The origin of the nodes of a replica: a backward throws their errors as a ReplicaError. Null for
/// replicas above 253.
[[nodiscard]] const autograd::Origin* origin_of_replica(std::size_t replica) noexcept;

}  // namespace braid::parallel
