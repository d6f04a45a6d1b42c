#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <braid/nn/replica_group.hpp>
#include <braid/parallel/process_communicator.hpp>

#include "distributed/virtual_tree.hpp"

// What layers see of the other ranks during a forward: sums over the whole batch.
namespace braid::parallel::distributed {

struct World {
  std::shared_ptr<ProcessCommunicator> ranks;
  std::optional<VirtualShare> share;  ///< deterministic
  bool refuses = false;               ///< some ranks may have no data, and would not take part
  mutable std::atomic<bool> used{false};

  /// The number of replicas on all ranks, if this one has `local`.
  [[nodiscard]] std::size_t replicas(std::size_t local) const noexcept {
    return share ? static_cast<std::size_t>(share->replicas)
                 : local * static_cast<std::size_t>(ranks->size());
  }
};

/// The world of the forward that runs on this thread; null outside of a DistributedDataParallel,
/// and in a world of one.
[[nodiscard]] std::shared_ptr<const World> current_world() noexcept;

/// Sets the world of this thread. `whole`: the model itself runs on this thread, as the only
/// replica of its rank.
class WorldScope {
 public:
  WorldScope(std::shared_ptr<const World> world, Device device, bool whole);
  ~WorldScope();
  WorldScope(const WorldScope&) = delete;
  WorldScope& operator=(const WorldScope&) = delete;

 private:
  class Group;
  std::shared_ptr<const World> before_;
  std::unique_ptr<Group> group_;
  ThreadContext* context_ = nullptr;
};

/// A collective: sums tensors over the replicas of all ranks. parts[replica * count + k] is on
/// devices[replica]; returns the sums in the same layout. Recorded; its gradient is the same sum.
[[nodiscard]] std::vector<Tensor> all_reduce_over(const std::shared_ptr<const World>& world,
                                                  std::span<const Tensor> parts,
                                                  std::span<const Device> devices);
[[nodiscard]] double all_reduce_over(const World& world, double value);

}  // namespace braid::parallel::distributed
