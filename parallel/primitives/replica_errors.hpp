#pragma once

namespace braid::parallel {

/// From now on a backward throws an error in a replica's op as a ReplicaError.
void name_replicas_in_errors() noexcept;

}  // namespace braid::parallel
