#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <braid/parallel/distributed_data_parallel.hpp>

#include "distributed/reducer.hpp"
#include "distributed/world.hpp"

namespace braid::parallel::detail {

/// Returns the name of a hook that a rank without data cannot take part in. Empty for no hook, and
/// for those whose collectives depend on nothing but the bucket.
[[nodiscard]] std::string hook_refused_by_join(const DistributedHook& hook);

struct Distributed::State {
  std::shared_ptr<ProcessCommunicator> ranks;
  std::shared_ptr<distributed::Reducer> reducer;
  bool broadcast_buffers = true, find_unused_parameters = false;
  std::string refused_hook;  ///< see hook_refused_by_join
  int virtual_replicas = 0, dim = 0;
  std::size_t devices = 1, most_devices = 1;  ///< of this rank; of the rank that has most
  std::vector<int> dims;
  std::vector<Tensor> parameters;  ///< all, as they were at construction
  std::vector<bool> trained;       ///< which of them required a gradient then
  int no_syncs = 0;                ///< open guards
  /// Buffers are to be sent before a forward without gradients: the ranks may have changed them.
  bool buffers_due = false;

  struct Joining {
    JoinOptions options;
    std::vector<int> active;  ///< the ranks that took part in the last forward
    bool all = true;
  };
  std::optional<Joining> joining;

  [[nodiscard]] bool deterministic() const noexcept { return virtual_replicas > 0; }
  /// Tells the ranks that have left what this one does; returns the first rank that has data.
  int announce(bool reduces);
  /// Waits for what the others do, and takes part. Returns false when all have left.
  bool follow(const tree::Flat& module);
  void set_active(const std::vector<std::vector<std::int64_t>>& announced);
};

}  // namespace braid::parallel::detail
