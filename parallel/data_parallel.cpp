#include <braid/parallel/data_parallel.hpp>

#include <braid/core/autograd.hpp>
#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/replicas.hpp>
#include <braid/parallel/local_replicas.hpp>

#include "primitives/balance.hpp"
#include "primitives/replica_cache.hpp"

namespace braid::parallel::detail {
namespace {

const char* kind_name(tree::Kind kind) {
  switch (kind) {
    case tree::Kind::parameter: return "parameter";
    case tree::Kind::buffer: return "buffer";
    case tree::Kind::tensor: break;
  }
  return "tensor";
}

}  // namespace

RandomSplit::RandomSplit(const DataParallelOptions& options)
    : dim_(options.dim), dims_(options.dims), first_(random_state().stream) {}

RandomSplit::~RandomSplit() { skip_random_streams(used_.load()); }

void RandomSplit::add(const tree::Flat& input) {
  RandomForward::Part part{parts_.size(), dim_, 0, 0};
  if (!parts_.empty()) part.first_row = parts_.back().first_row + parts_.back().rows;
  for (const tree::Leaf& leaf : input.leaves) {
    if (!leaf.tensor->defined()) continue;
    const int along = dim_of(input, leaf, dim_, dims_), rank = leaf.tensor->dim(),
              dim = along < 0 ? along + rank : along;
    if (dim < 0 || dim >= rank) continue;
    part.dim = along;
    part.rows = leaf.tensor->shape()[dim];
    break;
  }
  parts_.push_back(part);
}

RandomSplit::Scope::~Scope() {
  std::uint64_t most = split_.used_.load();
  while (most < forward_.used() && !split_.used_.compare_exchange_weak(most, forward_.used())) {}
}

BufferMerge::BufferMerge() = default;

BufferMerge::~BufferMerge() = default;

void BufferMerge::add(const tree::Flat& replica) {
  std::vector<Copy> copies;
  for (const tree::Leaf& leaf : replica.leaves)
    if (leaf.kind == tree::Kind::buffer)
      copies.push_back({*leaf.tensor, leaf.tensor->defined() ? leaf.tensor->version() : 0});
  replicas_.push_back(std::move(copies));
}

bool BufferMerge::any() const noexcept { return replicas_.size() > 1; }

void BufferMerge::finish(const tree::Flat& module, const RandomSplit& rows) const {
  double total = 0;
  for (std::size_t i = 0; i < replicas_.size(); ++i) total += static_cast<double>(rows.rows(i));
  const NoGrad guard;
  std::vector<std::pair<Tensor, Tensor>> means;  // all are computed before one is written
  std::size_t k = 0;
  for (const tree::Leaf& leaf : module.leaves) {
    if (leaf.kind != tree::Kind::buffer) continue;
    const std::size_t at = k++;
    if (!leaf.tensor->defined() || !is_floating(leaf.tensor->dtype()) || total == 0) continue;
    bool written = false;
    for (const std::vector<Copy>& copies : replicas_)
      written = written || copies[at].tensor.version() != copies[at].version;
    if (!written) continue;
    Tensor mean =
        zeros(leaf.tensor->shape(), {.device = leaf.tensor->device(), .dtype = DType::float64});
    for (std::size_t i = 0; i < replicas_.size(); ++i)
      mean.add_(replicas_[i][at].tensor.to(mean.device()).to(DType::float64) *
                (static_cast<double>(rows.rows(i)) / total));
    means.emplace_back(*leaf.tensor, mean.to(leaf.tensor->dtype()));
  }
  for (const auto& [buffer, mean] : means) buffer.copy_(mean);
}

CacheOwner::CacheOwner() : cache_(std::make_shared<ReplicaCache>()) {}
CacheOwner::CacheOwner(const CacheOwner&) : CacheOwner() {}
CacheOwner::CacheOwner(CacheOwner&&) noexcept = default;
CacheOwner& CacheOwner::operator=(const CacheOwner& other) { return *this = CacheOwner(other); }
CacheOwner& CacheOwner::operator=(CacheOwner&&) noexcept = default;
CacheOwner::~CacheOwner() = default;

ReplicateBytes CacheOwner::last() const { return cache_ ? cache_->last() : ReplicateBytes{}; }

LocalOwner::LocalOwner() = default;
LocalOwner::LocalOwner(const std::vector<Device>& devices, std::size_t bucket_bytes)
    : replicas_(std::make_shared<LocalReplicas>(devices, bucket_bytes)) {}
LocalOwner::LocalOwner(const LocalOwner& other)
    : replicas_(other.replicas_ ? std::make_shared<LocalReplicas>(other.replicas_->devices(),
                                                                  other.replicas_->bucket_bytes())
                                : nullptr) {}
LocalOwner::LocalOwner(LocalOwner&&) noexcept = default;
LocalOwner& LocalOwner::operator=(const LocalOwner& other) { return *this = LocalOwner(other); }
LocalOwner& LocalOwner::operator=(LocalOwner&&) noexcept = default;
LocalOwner::~LocalOwner() = default;

const std::shared_ptr<LocalReplicas>& LocalOwner::refreshed(const tree::Flat& module) const {
  replicas_->refresh(distinct_parameters(module));
  return replicas_;
}

ReplicateBytes LocalOwner::last() const { return replicas_ ? replicas_->last() : ReplicateBytes{}; }

void LocalOwner::zero_grad() const noexcept {
  if (replicas_) replicas_->zero_grad();
}

CacheUse::CacheUse(std::shared_ptr<ReplicaCache> cache) : cache_(std::move(cache)) {
  if (cache_ && !cache_->mutex.try_lock()) cache_.reset();
  if (cache_) cache_->note({});  // a call with one chunk sends nothing
}

CacheUse::~CacheUse() {
  if (cache_) cache_->mutex.unlock();
}

ScatterOptions scatter_options(const DataParallelOptions& options) {
  return {options.dim, options.dims, options.split, options.chunk_sizes, options.weights};
}

Shards parts_of(const tree::Flat& input, std::span<const Device> devices,
                const DataParallelOptions& options) {
  const ScatterOptions how = scatter_options(options);
  if (options.shards > 0)
    return scatter_shards(input, devices, static_cast<std::size_t>(options.shards), how);
  Shards parts;
  parts.leaves = scatter_leaves(input, devices, how);
  parts.devices.assign(devices.begin(),
                       devices.begin() + static_cast<std::ptrdiff_t>(parts.leaves.size()));
  return parts;
}

std::vector<Tensor> join_outputs(std::span<const tree::Flat> outputs, Device output_device,
                                 const DataParallelOptions& options) {
  return gather_leaves(outputs, output_device, options.dim, options.output_dims,
                       options.shards > 0);
}

std::shared_ptr<const DataParallelOptions> kept_options(const DataParallelOptions& options) {
  return std::make_shared<const DataParallelOptions>(options);
}

std::shared_ptr<const DataParallelOptions> kept_options(std::optional<Device> output_device,
                                                        int dim) {
  return kept_options(DataParallelOptions{.output_device = output_device, .dim = dim});
}

void check_group(const char* op, std::span<const Device> devices,
                 const DataParallelOptions& options) {
  check_devices(op, devices);
  if (options.shards < 0)
    throw ArgumentError(str(op, ": expected shards >= 0, got ", options.shards));
  if (options.shards > 0 && devices.empty())
    throw ArgumentError(
        str(op, ": expected a device at least for ", options.shards, " shards, got none"));
  if (options.shards > 0 && !(options.chunk_sizes.empty() && options.weights.empty()))
    throw ArgumentError(str(op, ": expected shards or chunk sizes or weights, got ", options.shards,
                            " shards and the others too"));
  if (options.shards > 0 && options.update == Update::local)
    throw ArgumentError(str(op, ": expected shards or local updates, got ", options.shards,
                            " shards and Update::local"));
  // throws for a device that does not exist
  if (options.output_device) (void)device_context(*options.output_device);
}

void warn_of_unequal(std::span<const Device> devices, const DataParallelOptions& options) {
  if (options.weights.empty() && options.chunk_sizes.empty()) warn_of_imbalance(devices);
}

void check_not_local(const DataParallelOptions& options) {
  if (options.update == Update::local)
    throw ArgumentError(
        "data_parallel: expected no Update::local, which keeps weights from call to call "
        "(DataParallel does)");
}

void check_local(const DataParallelOptions& options, std::span<const Device> devices) {
  if (options.update != Update::local)
    throw ArgumentError(
        "LocalUpdate: expected a DataParallel with update = Update::local, got one without");
  if (devices.empty())
    throw ArgumentError("LocalUpdate: expected a DataParallel with a device at least, got none");
}

void check_placement(const tree::Flat& module, Device first) {
  for (const tree::Leaf& leaf : module.leaves)
    if (leaf.tensor->defined() && leaf.tensor->device() != first)
      throw DeviceError(
          str("module must have its parameters and buffers on device ", first,
              " (device_ids[0]) but found one of them on device: ", leaf.tensor->device(), " (",
              kind_name(leaf.kind), " '", module.path(leaf), "')"));
}

void check_outermost() {
  if (replica_group())
    throw ArgumentError(
        "DataParallel: expected a call outside of other replicas, got one inside (a DataParallel "
        "in a DataParallel: wrap the whole model, or only its parts)");
}

void cannot_gather(const char* signature) {
  throw ArgumentError(str("gather: expected a tree of tensors from every replica, got ",
                          braid::detail::short_type_name(signature),
                          "; with one device any output is fine"));
}

}  // namespace braid::parallel::detail
