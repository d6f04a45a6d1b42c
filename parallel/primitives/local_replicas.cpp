#include <braid/parallel/local_replicas.hpp>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/trace.hpp>

#include <braid/parallel/communicator.hpp>

namespace braid::parallel::detail {
namespace {

BufferView view_of(const Tensor& t) { return {t.id()->data(), t.numel(), t.dtype(), t.device()}; }
std::size_t bytes_of(const Tensor& t) { return static_cast<std::size_t>(t.numel()) * size_of(t.dtype()); }

}  // namespace

std::vector<Tensor> distinct_parameters(const tree::Flat& flat) {
  const std::vector<std::size_t> first = flat.first_of();
  std::vector<Tensor> list;
  for (std::size_t k = 0; k < flat.leaves.size(); ++k)
    if (flat.leaves[k].kind == tree::Kind::parameter && first[k] == k && flat.leaves[k].tensor->defined()) list.push_back(*flat.leaves[k].tensor);
  return list;
}

LocalReplicas::Seen LocalReplicas::seen(std::size_t k) const {
  Seen now{copies_[0][k].storage()->id(), copies_[0][k].version(), {}};
  for (std::size_t rank = 1; rank < devices_.size(); ++rank) now.versions.push_back(copies_[rank][k].version());
  return now;
}

bool LocalReplicas::fresh(std::size_t k) const {
  const Seen now = seen(k), &then = seen_[k];
  return now.source == then.source && now.source_version == then.source_version && now.versions == then.versions && !copies_[0][k].storage()->exposed();
}

void LocalReplicas::refresh(std::span<const Tensor> parameters) {
  const std::lock_guard lock(mutex_);
  const NoGrad guard;
  if (copies_.empty()) {
    std::vector<std::vector<Tensor>> made(devices_.size());
    made[0].assign(parameters.begin(), parameters.end());
    for (std::size_t rank = 1; rank < devices_.size(); ++rank)
      for (const Tensor& p : parameters) {
        made[rank].push_back(make_tensor(p.shape(), p.dtype(), devices_[rank]));
        made[rank].back().requires_grad_(p.requires_grad());
        made[rank].back().id()->is_replica = true;
        made[rank].back().id()->tied = p.id()->tied;
      }
    copies_ = std::move(made);
    seen_.assign(parameters.size(), {});
  }
  bool same = parameters.size() == copies_[0].size();
  for (std::size_t k = 0; same && k < parameters.size(); ++k) {
    const Tensor &p = parameters[k], &was = copies_[0][k];
    same = p.id() == was.id() && p.device() == devices_[0];
    for (std::size_t rank = 1; same && rank < devices_.size(); ++rank) same = copies_[rank][k].shape() == p.shape() && copies_[rank][k].dtype() == p.dtype();
  }
  if (!same) throw ArgumentError("LocalUpdate: expected the model's parameters to be those that it had at first, got others, or of another shape or type");
  last_ = {};
  trace::GroupSpan span("refresh", trace::Phase::replicate, devices_.size() > 1 ? std::span<const Device>(devices_) : std::span<const Device>());
  std::vector<BufferView> views;
  std::vector<Tensor> sources;  // alive until they are sent
  std::vector<std::size_t> sent;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    for (std::size_t rank = 1; rank < devices_.size(); ++rank) copies_[rank][k].requires_grad_(parameters[k].requires_grad());
    const std::size_t each = bytes_of(parameters[k]), bytes = each * (devices_.size() - 1);
    const bool is_fresh = fresh(k);
    for (std::size_t rank = 1; rank < devices_.size(); ++rank) span.add_bytes(rank, is_fresh ? 0 : each, is_fresh ? each : 0, each);
    if (is_fresh) {
      last_.cached += bytes;
      continue;
    }
    last_.copied += bytes;
    sent.push_back(k);
    sources.push_back(parameters[k].detach().contiguous());
    views.push_back(view_of(sources.back()));
    for (std::size_t rank = 1; rank < devices_.size(); ++rank) views.push_back(view_of(copies_[rank][k]));
  }
  if (devices_.size() > 1 && !views.empty()) communicator_over(devices_)->broadcast(views);
  for (const std::size_t k : sent) {
    for (std::size_t rank = 1; rank < devices_.size(); ++rank) copies_[rank][k].storage()->bump_version();
    seen_[k] = seen(k);
  }
}

void LocalReplicas::stepped() {
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 0; k < seen_.size(); ++k) seen_[k] = seen(k);
}

void LocalReplicas::zero_grad() noexcept {
  for (std::size_t rank = 1; rank < copies_.size(); ++rank)
    for (const Tensor& copy : copies_[rank]) copy.set_grad({});
}

ReplicateBytes LocalReplicas::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace braid::parallel::detail
