#include <braid/parallel/internal/replicated_parameters.hpp>

#include <mutex>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/trace.hpp>
#include <braid/nn/internal/marks.hpp>
#include <braid/parallel/communicator.hpp>
#include <braid/parallel/internal/phases.hpp>

#include "primitives/views.hpp"

namespace braid::parallel::detail {

std::vector<Tensor> distinct_parameters(const tree::Flat& flat) {
  const std::vector<std::size_t> first = flat.first_of();
  std::vector<Tensor> list;
  for (std::size_t k = 0; k < flat.leaves.size(); ++k)
    if (flat.leaves[k].kind == tree::Kind::parameter && first[k] == k &&
        flat.leaves[k].tensor->defined())
      list.push_back(*flat.leaves[k].tensor);
  return list;
}

struct ReplicatedParameters::Lock {
  std::mutex mutex;
};

ReplicatedParameters::ReplicatedParameters(std::vector<Device> devices, std::size_t bucket_bytes)
    : lock_(std::make_shared<Lock>()), devices_(std::move(devices)), bucket_bytes_(bucket_bytes) {}

ReplicatedParameters::Seen ReplicatedParameters::seen(std::size_t k) const {
  Seen now{copies_[0][k].storage()->id(), copies_[0][k].version(), {}};
  for (std::size_t rank = 1; rank < devices_.size(); ++rank)
    now.versions.push_back(copies_[rank][k].version());
  return now;
}

bool ReplicatedParameters::fresh(std::size_t k) const {
  return seen(k) == seen_[k] && !copies_[0][k].storage()->exposed();
}

void ReplicatedParameters::make_copies(std::span<const Tensor> parameters) {
  std::vector<std::vector<Tensor>> made(devices_.size());
  made[0].assign(parameters.begin(), parameters.end());
  for (std::size_t rank = 1; rank < devices_.size(); ++rank)
    for (const Tensor& p : parameters) {
      made[rank].push_back(make_tensor(p.shape(), p.dtype(), devices_[rank]));
      made[rank].back().requires_grad_(p.requires_grad());
      made[rank].back().id()->marks = p.id()->marks;
      nn::detail::set_mark(made[rank].back(), nn::detail::Mark::replica);
    }
  seen_.assign(parameters.size(), {});
  copies_ = std::move(made);
}

void ReplicatedParameters::refresh(std::span<const Tensor> parameters) {
  const std::lock_guard lock(lock_->mutex);
  const NoGrad guard;
  if (copies_.empty()) make_copies(parameters);
  bool same = parameters.size() == copies_[0].size();
  for (std::size_t k = 0; same && k < parameters.size(); ++k) {
    const Tensor &p = parameters[k], &was = copies_[0][k];
    same = p.id() == was.id() && p.device() == devices_[0];
    for (std::size_t rank = 1; same && rank < devices_.size(); ++rank)
      same = copies_[rank][k].shape() == p.shape() && copies_[rank][k].dtype() == p.dtype();
  }
  if (!same)
    throw ArgumentError(
        "ReplicatedOptimizer: expected the model's parameters to be those that it had at first, "
        "got "
        "others, or of another shape or type");
  for (std::size_t rank = 1; rank < devices_.size(); ++rank)
    for (std::size_t k = 0; k < parameters.size(); ++k)
      copies_[rank][k].requires_grad_(parameters[k].requires_grad());
  last_ = {};
  send_changed(parameters, true);
}

void ReplicatedParameters::refresh_for_step() {
  const std::lock_guard lock(lock_->mutex);
  const NoGrad guard;
  send_changed(copies_[0], false);
}

void ReplicatedParameters::send_changed(std::span<const Tensor> parameters, bool count_cached) {
  if (devices_.size() == 1) return;
  std::vector<std::size_t> changed;
  for (std::size_t k = 0; k < parameters.size(); ++k)
    if (!fresh(k)) changed.push_back(k);
  if (changed.empty() && !count_cached) return;
  trace::GroupSpan span("refresh", phase::replicate, devices_);
  std::vector<BufferView> views;
  std::vector<Tensor> sources;  // kept alive until they are sent
  for (std::size_t k = 0, next = 0; k < parameters.size(); ++k) {
    const bool sent = next < changed.size() && changed[next] == k;
    if (!sent && !count_cached) continue;
    const std::size_t each = bytes_of(parameters[k]);
    for (std::size_t rank = 1; rank < devices_.size(); ++rank)
      span.add_bytes(rank, sent ? each : 0, sent ? 0 : each, each);
    (sent ? last_.copied : last_.cached) += each * (devices_.size() - 1);
    if (!sent) continue;
    ++next;
    sources.push_back(parameters[k].detach().contiguous());
    views.push_back(view_of(sources.back()));
    for (std::size_t rank = 1; rank < devices_.size(); ++rank)
      views.push_back(view_of(copies_[rank][k]));
  }
  if (!views.empty()) communicator_over(devices_)->broadcast(views);
  for (const std::size_t k : changed) {
    // A parameter may be sent only because somebody could have written it without a version change.
    // If its version is unchanged, the versions of the copies stay too, so that an earlier graph
    // remains valid, as on one device.
    if (seen(k) == seen_[k]) continue;
    for (std::size_t rank = 1; rank < devices_.size(); ++rank)
      copies_[rank][k].storage()->bump_version();
    seen_[k] = seen(k);
  }
}

void ReplicatedParameters::stepped() {
  const std::lock_guard lock(lock_->mutex);
  for (std::size_t k = 0; k < seen_.size(); ++k) seen_[k] = seen(k);
}

void ReplicatedParameters::zero_grad() noexcept {
  for (std::size_t rank = 1; rank < copies_.size(); ++rank)
    for (const Tensor& copy : copies_[rank]) copy.set_grad({});
}

ReplicateBytes ReplicatedParameters::last() const {
  const std::lock_guard lock(lock_->mutex);
  return last_;
}

}  // namespace braid::parallel::detail
