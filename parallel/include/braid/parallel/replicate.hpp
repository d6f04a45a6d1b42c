#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/scatter.hpp>

namespace braid::parallel {

class ReplicaCache;

/// What the last forward put on the other devices, over all of them.
struct ReplicateBytes {
  std::size_t copied = 0;  ///< sent there
  std::size_t cached = 0;  ///< was there already
  friend bool operator==(const ReplicateBytes&, const ReplicateBytes&) noexcept = default;
};

namespace detail {
/// The leaves of every replica: [rank][leaf]. A cache keeps the copies for the next time. `shards`: ranks may be on one device; they then share its parameters,
/// and have the other tensors, which a forward may write, of their own.
[[nodiscard]] std::vector<std::vector<Tensor>> replicate_leaves(const tree::Flat& flat, std::span<const Device> devices, ReplicaCache* cache = nullptr,
                                                                bool shards = false);

template <class M>
[[nodiscard]] std::vector<M> replicas_of(const M& module, std::span<const Device> devices, ReplicaCache* cache, bool shards = false) {
  check_tree<M>();
  std::vector<M> replicas;
  const std::vector<std::vector<Tensor>> copies = replicate_leaves(tree::flatten(module), devices, cache, shards);
  replicas.reserve(copies.size());
  for (const std::vector<Tensor>& leaves : copies) replicas.push_back(with_leaves(module, leaves));
  return replicas;
}
}  // namespace detail

/// A replica of the module for each device. The module must be on devices[0].
///
/// Replica 0 shares storage with the module, so that what it writes in place (statistics in buffers) stays; the others have copies, in one flat buffer for
/// every 10 MiB of a type. Parameters that are tied are copied once and tied in each replica; plain fields are copied.
/// The replicas' tensors are no leaves and are flagged `is_replica`; without gradient recording, and for tensors that require none, they have no history.
///
/// Gradient  sums over the replicas, in the fixed order of Communicator::reduce, on devices[0]; a parameter that no replica used gets none
/// Throws    DeviceError `all tensors must be on devices[0]`, or for a device that does not exist or is there twice;
///           ArgumentError for an empty list of devices
template <class M>
[[nodiscard]] std::vector<M> replicate(const M& module, const DeviceList& devices) {
  return detail::replicas_of(module, devices.list(), nullptr);
}

}  // namespace braid::parallel
