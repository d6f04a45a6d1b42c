#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/scatter.hpp>

namespace braid::parallel {

class ReplicaCache;

/// The maximum bytes of a flat buffer of copies, and of gradients that are summed in one call. A
/// larger tensor gets a separate buffer.
inline constexpr std::size_t kBucketBytes = 10 * 1024 * 1024;

/// The bytes of weights on the other devices in the last forward, summed over these devices.
struct ReplicateBytes {
  std::size_t copied = 0;  ///< sent there
  std::size_t cached = 0;  ///< already there
  ReplicateBytes& operator+=(const ReplicateBytes& other) noexcept {
    copied += other.copied;
    cached += other.cached;
    return *this;
  }
  friend bool operator==(const ReplicateBytes&, const ReplicateBytes&) noexcept = default;
};

namespace detail {
class ReplicatedParameters;
/// Takes the gradients of the replicas, parts[replica * tensors.size() + k], of some of the
/// module's tensors, in place of their sums. Returns false if it does not.
using TakeParts = std::function<bool(std::span<const Tensor> tensors, std::span<const Tensor> parts,
                                     std::span<const Device> devices)>;
/// How DataParallel differs from replicate.
struct Replication {
  ReplicaCache* cache = nullptr;  ///< keeps the copies for the next call
  /// provides the parameters; the other tensors are copied
  ReplicatedParameters* parameters = nullptr;
  /// several ranks may be on one device; they share its parameters, but get separate copies of the
  /// other tensors, because a forward may write them
  bool virtual_replicas = false;
  std::size_t bucket_bytes = kBucketBytes;
  TakeParts take = {};
};
/// Returns the leaves of every replica: [rank][leaf].
[[nodiscard]] std::vector<std::vector<Tensor>> replicate_leaves(const tree::Flat& flat,
                                                                std::span<const Device> devices,
                                                                const Replication& how);
}  // namespace detail

/// Returns a replica of the module for each device. The module must be on devices[0].
///
/// Replica 0 shares storage with the module, so in-place writes (statistics in buffers) are kept.
/// The other replicas have copies, in one flat buffer per 10 MiB of a dtype. Tied parameters are
/// copied once and tied in each replica. Plain fields are copied. The replicas' tensors are not
/// leaves and are marked as replicas. They have no graph if gradients are not recorded, or if the
/// module's tensor requires no gradient.
///
/// Gradient  the sum over the replicas, in the order of Communicator::reduce (fixed by `local`), on
///           devices[0]; a parameter that no replica used gets none
/// Throws    DeviceError `all tensors must be on devices[0]`, or for a device that does not exist
///           or is listed twice; ArgumentError for an empty list of devices
///
///     const std::vector<Net> replicas = parallel::replicate(model, devices());
template <class M>
[[nodiscard]] std::vector<M> replicate(const M& module, const DeviceList& devices) {
  check_tree<M>();
  return detail::with_each(module,
                           detail::replicate_leaves(tree::flatten(module), devices.list(), {}));
}

}  // namespace braid::parallel
