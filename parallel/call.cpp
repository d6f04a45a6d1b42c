#include <braid/parallel/internal/call.hpp>

#include <braid/core/autograd.hpp>
#include <braid/core/checkpoint.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/nn/replica_group.hpp>
#include <braid/parallel/internal/replicated_parameters.hpp>

#include "primitives/replica_cache.hpp"
#include "state.hpp"

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

/// Throws ArgumentError inside of a replica, for types that did not show it.
void check_outermost() {
  if (replica_group())
    throw ArgumentError(
        "DataParallel: expected a call outside of other replicas, got one inside (a DataParallel "
        "in a DataParallel: wrap the whole model, or only its parts)");
}

}  // namespace

void check_placement(const tree::Flat& module, Device first) {
  for (const tree::Leaf& leaf : module.leaves)
    if (leaf.tensor->defined() && leaf.tensor->device() != first)
      throw DeviceError(
          str("module must have its parameters and buffers on device ", first,
              " (device_ids[0]) but found one of them on device: ", leaf.tensor->device(), " (",
              kind_name(leaf.kind), " '", module.path(leaf), "')"));
}

RandomSplit::RandomSplit(int dim, std::span<const int> dims)
    : dim_(dim), dims_(dims), first_(random_state().stream) {}

RandomSplit::~RandomSplit() { skip_random_streams(used_.load()); }

void RandomSplit::add(const tree::Flat& input, std::span<const Tensor> leaves) {
  RandomScope::Part part{first_replica_ + parts_.size(), dim_, first_row_, 0};
  if (!parts_.empty()) part.first_row = parts_.back().first_row + parts_.back().rows;
  for (std::size_t k = 0; k < input.leaves.size(); ++k) {
    const Tensor& x = leaves.empty() ? *input.leaves[k].tensor : leaves[k];
    if (!x.defined()) continue;
    const int along = dim_of(input, input.leaves[k], dim_, dims_), rank = x.dim(),
              dim = along < 0 ? along + rank : along;
    if (dim < 0 || dim >= rank) continue;
    part.dim = along;
    part.rows = x.shape()[dim];
    break;
  }
  parts_.push_back(part);
}

RandomSplit::Scope::~Scope() {
  std::uint64_t most = split_.used_.load();
  while (most < forward_.used() && !split_.used_.compare_exchange_weak(most, forward_.used())) {}
}

Call::Call(const State& state, tree::Flat module, tree::Flat batch, const RankShare* share)
    : kept_(state.kept_),
      all_devices_(kept_->devices),
      options_(kept_->options),
      module_(std::move(module)),
      batch_(std::move(batch)),
      share_(share),
      random_(options_.scatter.dim, options_.scatter.dims) {
  braid::detail::refuse_in_checkpoint("DataParallel");
  check_placement(module_, all_devices_.front());
  if (is_whole()) random_.add(batch_, {});
  else check_outermost();
}

Call::~Call() { end_replicas(); }

bool Call::is_whole() const noexcept {
  return all_devices_.size() == 1 && options_.virtual_replicas == 0;
}

std::vector<std::vector<Tensor>> Call::scatter_batch() {
  std::vector<std::vector<Tensor>> parts;
  if (options_.virtual_replicas > 0) {
    VirtualReplicas split = scatter_to_virtual_replicas(
        batch_, all_devices_, options_.virtual_replicas, options_.scatter,
        share_ ? std::span<const std::int64_t>(share_->rows) : std::span<const std::int64_t>());
    if (share_) random_.begin_at(share_->first_replica, share_->first_row);
    parts = std::move(split.leaves);
    devices_ = std::move(split.devices);
  } else {
    parts = scatter_leaves(batch_, all_devices_, options_.scatter);
    const auto used = all_devices_.first(parts.size());
    devices_.assign(used.begin(), used.end());
  }
  for (const std::vector<Tensor>& leaves : parts) random_.add(batch_, leaves);
  return parts;
}

std::vector<std::vector<Tensor>> Call::replicate_module() {
  if (options_.cache && kept_->cache->mutex.try_lock()) {  // else another call uses its copies
    cache_ = kept_->cache.get();
    cache_->note({});  // a call with one part sends nothing
  }
  const std::shared_ptr<ReplicatedParameters> parameters = kept_->replicated_parameters();
  std::vector<std::vector<Tensor>> replicas =
      replicate_leaves(module_, devices_,
                       {cache_, parameters.get(), options_.virtual_replicas > 0,
                        options_.bucket_bytes, share_ ? share_->take : TakeParts()});
  if (options_.merge_buffers == MergeBuffers::replica0) return replicas;
  for (const std::vector<Tensor>& leaves : replicas) {
    std::vector<BufferState>& buffers = buffers_.emplace_back();
    for (std::size_t k = 0; k < leaves.size(); ++k)
      if (module_.leaves[k].kind == tree::Kind::buffer)
        buffers.push_back({leaves[k], leaves[k].defined() ? leaves[k].version() : 0});
  }
  return replicas;
}

void Call::merge_buffers() const {
  if (buffers_.size() < 2) return;
  double total = 0;
  for (std::size_t i = 0; i < buffers_.size(); ++i) total += static_cast<double>(random_.rows(i));
  const NoGrad guard;
  std::vector<std::pair<Tensor, Tensor>> means;  // all are made before one is written
  std::size_t k = 0;
  for (const tree::Leaf& leaf : module_.leaves) {
    if (leaf.kind != tree::Kind::buffer) continue;
    const std::size_t at = k++;
    if (!leaf.tensor->defined() || !is_floating(leaf.tensor->dtype()) || total == 0) continue;
    bool written = false;
    for (const std::vector<BufferState>& states : buffers_)
      written = written || states[at].tensor.version() != states[at].version;
    if (!written) continue;
    Tensor mean =
        zeros(leaf.tensor->shape(), {.device = leaf.tensor->device(), .dtype = DType::float64});
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      mean.add_(buffers_[i][at].tensor.to(mean.device()).to(DType::float64) *
                (static_cast<double>(random_.rows(i)) / total));
    means.emplace_back(*leaf.tensor, mean.to(leaf.tensor->dtype()));
  }
  for (const auto& [buffer, mean] : means) buffer.copy_(mean);
}

void Call::end_replicas() noexcept {
  if (cache_ != nullptr) cache_->mutex.unlock();
  cache_ = nullptr;
}

std::vector<Tensor> Call::gather_outputs(std::span<const tree::Flat> outputs) const {
  return gather_leaves(outputs, output_device(), options_.scatter.dim, options_.output_dims,
                       options_.virtual_replicas > 0);
}

Device Call::output_device() const { return options_.output_device.value_or(all_devices_.front()); }

void cannot_gather(const char* signature) {
  throw ArgumentError(str("gather: expected a tree of tensors from every replica, got ",
                          braid::detail::short_type_name(signature),
                          "; with one device any output is fine"));
}

}  // namespace braid::parallel::detail
