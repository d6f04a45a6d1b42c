#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>

// Copies of many tensors on many devices, and sums over them: each is the other's gradient, so gradients of gradients work.
namespace braid::parallel {

class ReplicaCache;

/// Most bytes of a flat buffer; a larger tensor has one of its own.
inline constexpr std::size_t kBucketBytes = 10 * 1024 * 1024;

/// Copies of tensors that lie on devices[0]: [rank][tensor]. Those on that device share storage with the originals; the others lie in flat buffers by type, in
/// the given order, each with a version counter of its own. Ranks on one device share its copies. All tensors that require a gradient are one recorded op.
/// With a cache only what is stale in it is copied. `fixed`: gradients are added in the fixed order, whoever carries the numbers else.
[[nodiscard]] std::vector<std::vector<Tensor>> broadcast_tensors(std::span<const Tensor> tensors, std::span<const Device> devices,
                                                                 ReplicaCache* cache = nullptr, bool fixed = false);

/// Sums over the ranks of parts[rank * count + k], count = parts / devices, on devices[0]; undefined parts are zeros, and the sum of undefined parts alone is
/// undefined. `fixed`, and where several ranks are on one device: the order of the additions is local's, and depends on the number of ranks alone.
/// Without gradient recording a part of rank 0 that nobody else holds becomes the sum.
[[nodiscard]] std::vector<Tensor> reduce_tensors(std::span<const Tensor> parts, std::span<const Device> devices, bool fixed = false);

}  // namespace braid::parallel
