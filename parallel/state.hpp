#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <braid/parallel/internal/call.hpp>

namespace braid::parallel::detail {

struct State::Kept {
  std::vector<Device> devices;
  CallOptions options;
  std::shared_ptr<ReplicaCache> cache;

  [[nodiscard]] std::shared_ptr<ReplicatedParameters> replicated_parameters() {
    if (!had_parameters.load(std::memory_order_acquire)) return nullptr;
    const std::lock_guard lock(mutex);
    return parameters.lock();
  }

  std::atomic<bool> had_parameters{false};  // most calls need no lock
  std::mutex mutex;                         // guards parameters
  std::weak_ptr<ReplicatedParameters> parameters;
};

/// Throws DeviceError unless all tensors of the module are on the first device.
void check_placement(const tree::Flat& module, Device first);

}  // namespace braid::parallel::detail
