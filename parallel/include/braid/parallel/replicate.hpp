#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/scatter.hpp>

namespace braid::parallel {

class ReplicaCache;

/// Most bytes of a flat buffer of copies, and of gradients that are added in one call; a larger
/// tensor is alone.
inline constexpr std::size_t kBucketBytes = 10 * 1024 * 1024;

/// What the last forward put on the other devices, over all of them.
struct ReplicateBytes {
  std::size_t copied = 0;  ///< sent there
  std::size_t cached = 0;  ///< was there already
  ReplicateBytes& operator+=(const ReplicateBytes& other) noexcept {
    copied += other.copied;
    cached += other.cached;
    return *this;
  }
  friend bool operator==(const ReplicateBytes&, const ReplicateBytes&) noexcept = default;
};

namespace detail {
class LocalReplicas;
/// What DataParallel does otherwise than replicate.
struct Replication {
  ReplicaCache* cache = nullptr;   ///< keeps the copies for the next time
  LocalReplicas* local = nullptr;  ///< has the parameters; the rest is copied
  /// ranks may be on one device; they then share its parameters, and have the other tensors, which
  /// a forward may write, of their own
  bool shards = false;
  std::size_t bucket_bytes = kBucketBytes;
};
/// The leaves of every replica: [rank][leaf].
[[nodiscard]] std::vector<std::vector<Tensor>> replicate_leaves(const tree::Flat& flat,
                                                                std::span<const Device> devices,
                                                                const Replication& how);

template <class M>
[[nodiscard]] std::vector<M> replicas_of(const M& module, std::span<const Device> devices,
                                         const Replication& how = {}) {
  check_tree<M>();
  return with_each(module, replicate_leaves(tree::flatten(module), devices, how));
}
}  // namespace detail

/// A replica of the module for each device. The module must be on devices[0].
///
/// Replica 0 shares storage with the module, so that what it writes in place (statistics in
/// buffers) stays; the others have copies, in one flat buffer for every 10 MiB of a type.
/// Parameters that are tied are copied once and tied in each replica; plain fields are copied.
/// The replicas' tensors are no leaves and are flagged `is_replica`; without gradient recording,
/// and for tensors that require none, they have no history.
///
/// Gradient  sums over the replicas, in the order of Communicator::reduce (fixed by `local`), on
///           devices[0]; a parameter that no replica used gets none
/// Throws    DeviceError `all tensors must be on devices[0]`, or for a device that does not exist
///           or is there twice;
///           ArgumentError for an empty list of devices
template <class M>
[[nodiscard]] std::vector<M> replicate(const M& module, const DeviceList& devices) {
  return detail::replicas_of(module, devices.list());
}

}  // namespace braid::parallel
