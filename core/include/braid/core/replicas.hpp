#pragma once
#include <cstddef>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/tensor.hpp>

namespace braid {

/// The replicas of a model that run at the same time, as one of them sees it: for layers that
/// compute over the whole batch, not over a replica's chunk.
class ReplicaGroup {
 public:
  virtual ~ReplicaGroup() = default;
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;
  /// The replicas are shards of a batch that is cut in as many whatever the number of devices: what
  /// a layer computes over a batch has to be over all of them.
  [[nodiscard]] virtual bool shards() const noexcept = 0;
  /// The sum over the replicas of each tensor, on this one's device, in the fixed order of
  /// Communicator::reduce. All replicas have to come here, with as many tensors of the same shapes
  /// and dtypes; the calling threads wait for each other. Recorded: the gradient of a sum goes to
  /// every replica's part. Throws what went wrong there, in every replica; ArgumentError for other
  /// tensors than those of replica 0, or if a replica has ended without coming.
  [[nodiscard]] virtual std::vector<Tensor> all_reduce(std::vector<Tensor> tensors) = 0;
  /// The sum over the replicas of a number that the host knows; nothing is queued on a device.
  [[nodiscard]] virtual double all_reduce(double value) = 0;
  /// The number of the replica that the calling thread is: 0 to size() - 1.
  [[nodiscard]] virtual std::size_t rank() const noexcept = 0;
};

/// The group that the calling thread is a replica of; null outside of parallel_apply.
[[nodiscard]] inline ReplicaGroup* replica_group() noexcept { return thread_state().replicas; }

}  // namespace braid
