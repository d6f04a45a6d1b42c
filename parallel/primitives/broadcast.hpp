#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/parallel/replicate.hpp>

#include "primitives/pieces.hpp"

// Copies of many tensors on many devices, and sums over them: each is the other's gradient, so
// gradients of gradients work.
namespace braid::parallel {

/// How broadcast_tensors does it.
struct Broadcast {
  ReplicaCache* cache = nullptr;  // only what is stale in it is copied
  // of a flat buffer, and of a recorded op; a larger tensor has one of its own
  std::size_t bucket_bytes = kBucketBytes;
  // gradients are added in the fixed order, whoever carries the numbers else
  bool fixed = false;
  Traced traced = {"replicate", trace::Phase::replicate};
};

/// Copies of tensors that lie on devices[0]: [rank][tensor]. Those on that device share storage
/// with the originals; the others lie in flat buffers by type, in the given order, each with a
/// version counter of its own. Ranks on one device share its copies. Those that require a gradient
/// are one recorded op; where devices work beside the host they are one for each bucket, whose sums
/// begin when their gradients are there, on streams of their own.
[[nodiscard]] std::vector<std::vector<Tensor>> broadcast_tensors(std::span<const Tensor> tensors,
                                                                 std::span<const Device> devices,
                                                                 const Broadcast& how = {});

/// Devices that work while the host goes on, each with memory of its own.
[[nodiscard]] bool beside_the_host(std::span<const Device> devices);

/// Sums over the ranks of parts[rank * count + k], count = parts / devices, on devices[0];
/// undefined parts are zeros, and the sum of undefined parts alone is undefined. `fixed`, and where
/// several ranks are on one device: the order of the additions is local's, and depends on the
/// number of ranks alone. Without gradient recording a part of rank 0 that nobody else holds
/// becomes the sum.
[[nodiscard]] std::vector<Tensor> reduce_tensors(std::span<const Tensor> parts,
                                                 std::span<const Device> devices,
                                                 bool fixed = false);

}  // namespace braid::parallel
