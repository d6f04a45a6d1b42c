#pragma once
#include <cstddef>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/tensor.hpp>

namespace braid {

/// The replicas of a model that run in parallel, as seen from one of them: those of one process or,
/// in a DistributedDataParallel, of all processes. For layers that compute over the whole batch
/// instead of a replica's part.
///
///     Tensor sum_of_batch(const Tensor& x) {
///       ReplicaGroup* const group = replica_group();
///       const Tensor sum = x.sum(0);
///       return group == nullptr ? sum : group->all_reduce({sum})[0];
///     }
class ReplicaGroup : public ThreadContext {
 public:
  /// The number of replicas.
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;
  /// True if the replicas are virtual replicas: the batch is cut into a fixed number of parts,
  /// whatever the number of devices. A layer that computes something over the batch must then
  /// compute it over all replicas.
  [[nodiscard]] virtual bool virtual_replicas() const noexcept = 0;
  /// Returns the sum over the replicas of each tensor, on this replica's device, in the fixed order
  /// of Communicator::reduce. All replicas must call it, with the same number of tensors of the
  /// same shapes and dtypes; the calling threads wait for each other. Recorded: the gradient of a
  /// sum goes to every replica's part. An error during the summation is thrown in every replica.
  /// Throws ArgumentError if the tensors differ from those of replica 0, or if a replica has ended
  /// without calling it.
  [[nodiscard]] virtual std::vector<Tensor> all_reduce(std::vector<Tensor> tensors) = 0;
  /// The sum over the replicas of a number on the host; queues nothing on a device.
  [[nodiscard]] virtual double all_reduce(double value) = 0;
  /// Index of the calling thread's replica, among those of its process.
  [[nodiscard]] virtual std::size_t rank() const noexcept = 0;
};

/// The group of the calling thread's replica; null outside of parallel_apply.
[[nodiscard]] inline ReplicaGroup* replica_group() noexcept {
  return dynamic_cast<ReplicaGroup*>(thread_state().context);
}

}  // namespace braid
