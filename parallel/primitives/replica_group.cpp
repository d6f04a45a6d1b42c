#include "primitives/replica_group.hpp"

#include <mutex>

#include <braid/core/checkpoint.hpp>

#include "primitives/broadcast.hpp"
#include "primitives/serial_executor.hpp"

namespace braid::parallel {
namespace {

/// Work recorded during its lifetime belongs to no replica.
class Outside {
 public:
  Outside() : before_(std::exchange(thread_state().context, nullptr)) {}
  ~Outside() { thread_state().context = before_; }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  ThreadContext* before_;
};

}  // namespace

Rendezvous::Rendezvous(std::span<const Device> devices, bool virtual_replicas)
    : devices_(devices.begin(), devices.end()),
      virtual_replicas_(virtual_replicas),
      world_(distributed::current_world()),
      tensors_(devices.size()),
      values_(devices.size()),
      brought_(devices.size()),
      left_alone_(devices.size()) {}

template <class Bring, class Work, class Take>
auto Rendezvous::meet(std::size_t rank, What what, const Bring& bring, const Work& work,
                      const Take& take) {
  std::unique_lock lock(mutex_);
  const auto check_all_here = [&] {
    if (!left_) return;
    left_alone_[rank] = 1;
    throw ArgumentError(str("all_reduce: expected all replicas, got none from replica ", left_rank_,
                            ", which has ended"));
  };
  check_all_here();
  bring(rank);
  brought_[rank] = what;
  if (++arrived_ == size()) {
    try {
      error_ = nullptr;
      for (std::size_t i = 0; i < size(); ++i)
        if (brought_[i] != what)
          throw ArgumentError(str("all_reduce: expected all replicas to bring the same, got ",
                                  what == What::number ? "tensors" : "a number", " from replica ",
                                  i, " and ", what == What::number ? "a number" : "tensors",
                                  " from replica ", rank));
      const Outside outside;
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
    arrived_ = 0;
    ++rounds_;
    changed_.notify_all();
  } else {
    const std::uint64_t before = rounds_;
    SerialExecutor::begin_wait();
    changed_.wait(lock, [&] { return rounds_ != before || left_; });
    lock.unlock();  // the job that runs may be about to enter the next rendezvous
    SerialExecutor::end_wait();
    lock.lock();
    if (rounds_ == before) check_all_here();
  }
  // The next rendezvous cannot begin its work before this replica arrives at it.
  if (error_) std::rethrow_exception(error_);
  return take(rank);
}

void Rendezvous::add_tensors() {
  const std::size_t count = tensors_.front().size();
  std::vector<Tensor> parts;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    bool same = tensors_[rank].size() == count;
    for (std::size_t k = 0; same && k < count; ++k) {
      const Tensor &a = tensors_.front()[k], &b = tensors_[rank][k];
      same = a.defined() && b.defined() && a.shape() == b.shape() && a.dtype() == b.dtype() &&
             b.device() == devices_[rank];
    }
    if (!same)
      throw ArgumentError(
          str("all_reduce: expected tensors like those of replica 0, each on its device, got "
              "others from replica ",
              rank));
    parts.insert(parts.end(), tensors_[rank].begin(), tensors_[rank].end());
  }
  // Released so that reduce_tensors may write into a part.
  for (std::vector<Tensor>& brought : tensors_) brought.clear();
  if (world_) {
    const std::vector<Tensor> sums = distributed::all_reduce_over(world_, parts, devices_);
    for (std::size_t rank = 0; rank < size(); ++rank)
      tensors_[rank].assign(sums.begin() + static_cast<std::ptrdiff_t>(rank * count),
                            sums.begin() + static_cast<std::ptrdiff_t>((rank + 1) * count));
    return;
  }
  tensors_ = broadcast_tensors(reduce_tensors(parts, devices_, virtual_replicas_), devices_,
                               {.fixed = virtual_replicas_});
}

std::vector<Tensor> Rendezvous::all_reduce(std::size_t rank, std::vector<Tensor> tensors) {
  braid::detail::refuse_in_checkpoint("ReplicaGroup::all_reduce");
  return meet(
      rank, What::tensors, [&](std::size_t i) { tensors_[i] = std::move(tensors); },
      [&] { add_tensors(); }, [&](std::size_t i) { return std::move(tensors_[i]); });
}

double Rendezvous::all_reduce(std::size_t rank, double value) {
  braid::detail::refuse_in_checkpoint("ReplicaGroup::all_reduce");
  return meet(
      rank, What::number, [&](std::size_t i) { values_[i] = value; },
      [&] {
        double total = 0;
        for (const double each : values_) total += each;
        if (world_) total = distributed::all_reduce_over(*world_, total);
        values_.assign(size(), total);
      },
      [&](std::size_t i) { return values_[i]; });
}

void Rendezvous::leave(std::size_t rank) {
  const std::lock_guard lock(mutex_);
  if (!left_++) left_rank_ = rank;
  changed_.notify_all();
}

ReplicaGroupScope::ReplicaGroupScope(Rendezvous& rendezvous, std::size_t rank)
    : rendezvous_(rendezvous), rank_(rank), before_(thread_state().context) {
  thread_state().context = this;
}
ReplicaGroupScope::~ReplicaGroupScope() {
  thread_state().context = before_;
  rendezvous_.leave(rank_);
}

}  // namespace braid::parallel
