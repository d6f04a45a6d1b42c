#include <braid/parallel/data_parallel.hpp>

#include <mutex>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/parallel/deterministic_data_parallel.hpp>
#include <braid/parallel/internal/replicated_parameters.hpp>

#include "primitives/balance.hpp"
#include "primitives/replica_cache.hpp"
#include "state.hpp"

namespace braid::parallel::detail {

State::State() = default;
State::State(const char* name, std::vector<Device> devices, CallOptions options)
    : kept_(std::make_shared<Kept>()) {
  check_devices(name, devices);
  // throws for a device that does not exist
  if (options.output_device) (void)device_context(*options.output_device);
  kept_->devices = std::move(devices);
  kept_->options = std::move(options);
  kept_->cache = std::make_shared<ReplicaCache>();
}
State::State(const State& other) {
  if (!other.kept_) return;
  kept_ = std::make_shared<Kept>();
  kept_->devices = other.kept_->devices;
  kept_->options = other.kept_->options;
  kept_->cache = std::make_shared<ReplicaCache>();
}
State::State(State&&) noexcept = default;
State& State::operator=(const State& other) { return *this = State(other); }
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

const std::vector<Device>& State::devices() const noexcept {
  static const std::vector<Device> none;
  return kept_ ? kept_->devices : none;
}

const CallOptions& State::options() const noexcept {
  static const CallOptions none;
  return kept_ ? kept_->options : none;
}

void State::warn_of_imbalance() const {
  const ScatterOptions& scatter = options().scatter;
  if (options().virtual_replicas > 0 || (scatter.weights.empty() && scatter.chunk_sizes.empty()))
    parallel::warn_of_imbalance(devices());
}

ReplicateBytes State::last_bytes() const {
  if (!kept_) return {};
  ReplicateBytes bytes = kept_->cache->last();
  if (const auto parameters = kept_->replicated_parameters()) bytes += parameters->last();
  return bytes;
}

std::shared_ptr<ReplicatedParameters> State::replicate_parameters(const tree::Flat& module) const {
  if (devices().empty())
    throw ArgumentError(
        "ReplicatedOptimizer: expected a DataParallel with a device at least, got none");
  if (options().virtual_replicas > 0)
    throw ArgumentError(
        "ReplicatedOptimizer: expected a DataParallel, got a DeterministicDataParallel, whose "
        "replicas share the parameters of their device");
  check_placement(module, devices().front());
  std::shared_ptr<ReplicatedParameters> parameters;
  {
    const std::lock_guard lock(kept_->mutex);
    parameters = kept_->parameters.lock();
    if (!parameters) {
      parameters =
          std::make_shared<ReplicatedParameters>(kept_->devices, kept_->options.bucket_bytes);
      kept_->parameters = parameters;
      kept_->had_parameters.store(true, std::memory_order_release);
    }
  }
  parameters->refresh(distinct_parameters(module));
  return parameters;
}

std::shared_ptr<ReplicatedParameters> State::replicated_parameters() const noexcept {
  return kept_ ? kept_->replicated_parameters() : nullptr;
}

void State::zero_grad() const noexcept {
  if (const auto parameters = replicated_parameters()) parameters->zero_grad();
}

State make_state(const char* name, const DeviceList& devices, const DataParallelOptions& options) {
  CallOptions call;
  call.output_device = options.output_device;
  call.scatter = {options.dim, options.dims, options.split, options.chunk_sizes, options.weights};
  call.output_dims = options.output_dims;
  call.merge_buffers = options.merge_buffers;
  call.cache = options.cache;
  call.bucket_bytes = options.bucket_bytes;
  return {name, devices.list(), std::move(call)};
}

State make_state(const DeviceList& devices, const DeterministicOptions& options) {
  if (options.virtual_replicas < 1)
    throw ArgumentError(str("DeterministicDataParallel: expected virtual_replicas >= 1, got ",
                            options.virtual_replicas));
  if (devices.list().empty())
    throw ArgumentError(str("DeterministicDataParallel: expected a device at least for ",
                            options.virtual_replicas, " virtual replicas, got none"));
  CallOptions call;
  call.output_device = options.output_device;
  call.scatter.dim = options.dim;
  call.scatter.dims = options.dims;
  call.output_dims = options.output_dims;
  call.merge_buffers = options.merge_buffers;
  call.cache = options.cache;
  call.bucket_bytes = options.bucket_bytes;
  call.virtual_replicas = static_cast<std::size_t>(options.virtual_replicas);
  return {"DeterministicDataParallel", devices.list(), std::move(call)};
}

}  // namespace braid::parallel::detail
