#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/parallel/internal/phases.hpp>
#include <braid/parallel/replicate.hpp>

#include "primitives/pieces.hpp"

// Copies of many tensors on many devices, and sums over them. Each is the other's gradient, so
// gradients of gradients work.
namespace braid::parallel {

/// The options of broadcast_tensors.
struct Broadcast {
  ReplicaCache* cache = nullptr;  // only its stale copies are updated
  // the largest size of a flat buffer, and of a recorded op; a larger tensor gets a separate one
  std::size_t bucket_bytes = kBucketBytes;
  // gradients are added in the fixed order of `local`, even where the communicator is NCCL's
  bool fixed = false;
  Traced traced = {"replicate", phase::replicate};
  detail::TakeParts take = {};  // called in place of the sums in backward
};

/// Copies tensors from devices[0] to every rank. Returns the copies as [rank][tensor]. On
/// devices[0] the copies share storage with the originals. On the others they are in flat buffers
/// by dtype, in the given order, each with a separate version counter. Ranks on one device share
/// its copies. The copies that require a gradient are one recorded op. On asynchronous devices they
/// are one op per bucket, whose sums begin when their gradients are ready, on separate streams.
[[nodiscard]] std::vector<std::vector<Tensor>> broadcast_tensors(std::span<const Tensor> tensors,
                                                                 std::span<const Device> devices,
                                                                 const Broadcast& how = {});

/// True if all devices are asynchronous and have separate memory.
[[nodiscard]] bool all_asynchronous(std::span<const Device> devices);

/// For each k, returns the sum of parts[rank * count + k] over the ranks, on devices[0]; count is
/// the number of parts divided by the number of devices. Undefined parts are zeros; a sum of
/// undefined parts only is undefined. With `fixed`, or if several ranks are on one device, the
/// order of the additions is that of `local` and depends only on the number of ranks. If gradients
/// are not recorded, a part of rank 0 without other owners is overwritten by the sum.
[[nodiscard]] std::vector<Tensor> reduce_tensors(std::span<const Tensor> parts,
                                                 std::span<const Device> devices,
                                                 bool fixed = false);

}  // namespace braid::parallel
