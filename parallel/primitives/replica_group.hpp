#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/nn/replica_group.hpp>

#include "distributed/world.hpp"
#include "primitives/replica_errors.hpp"

// The rendezvous of the replicas of one forward. The last replica that arrives does the work for
// all, as ordinary recorded ops over devices.
namespace braid::parallel {

class Rendezvous {
 public:
  Rendezvous(std::span<const Device> devices, bool virtual_replicas);
  [[nodiscard]] std::size_t size() const noexcept { return devices_.size(); }
  /// The replicas of all ranks.
  [[nodiscard]] std::size_t size_of_world() const noexcept {
    return world_ ? world_->replicas(size()) : size();
  }
  [[nodiscard]] bool virtual_replicas() const noexcept { return virtual_replicas_; }

  [[nodiscard]] std::vector<Tensor> all_reduce(std::size_t rank, std::vector<Tensor> tensors);
  [[nodiscard]] double all_reduce(std::size_t rank, double value);
  /// True if the replica failed only because another one had ended. Such a follow-up error is never
  /// the cause, so it is reported only if there is no other error.
  [[nodiscard]] bool left_alone(std::size_t rank) const noexcept { return left_alone_[rank]; }
  /// Called when the replica has ended: replicas that wait for it now or later throw.
  void leave(std::size_t rank);

 private:
  /// Stores this replica's values with `bring`, waits for all replicas, and returns the result of
  /// `take`. The last replica that arrives calls `work`, with the lock held.
  enum class What : std::uint8_t { tensors, number };
  template <class Bring, class Work, class Take>
  auto meet(std::size_t rank, What what, const Bring& bring, const Work& work, const Take& take);
  void add_tensors();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Device> devices_;
  bool virtual_replicas_;
  std::shared_ptr<const distributed::World> world_;  // of the calling thread; null: one process
  // [rank]: first the inputs, then the sums
  std::vector<std::vector<Tensor>> tensors_;
  std::vector<double> values_;    // likewise
  std::vector<What> brought_;     // [rank]
  std::vector<char> left_alone_;  // likewise; read after all have ended
  std::size_t arrived_ = 0;
  std::uint64_t rounds_ = 0;
  std::size_t left_ = 0, left_rank_ = 0;
  std::exception_ptr error_;  // of the last rendezvous
};

/// The replica group of one replica's thread, during its call.
class ReplicaGroupScope final : public ReplicaGroup {
 public:
  ReplicaGroupScope(Rendezvous& rendezvous, std::size_t rank);
  ~ReplicaGroupScope() override;
  ReplicaGroupScope(const ReplicaGroupScope&) = delete;
  ReplicaGroupScope& operator=(const ReplicaGroupScope&) = delete;
  [[nodiscard]] std::size_t size() const noexcept override { return rendezvous_.size_of_world(); }
  [[nodiscard]] std::size_t rank() const noexcept override { return rank_; }
  [[nodiscard]] const autograd::Origin* origin() const noexcept override {
    return origin_of_replica(rank_);
  }
  [[nodiscard]] bool virtual_replicas() const noexcept override {
    return rendezvous_.virtual_replicas();
  }
  [[nodiscard]] std::vector<Tensor> all_reduce(std::vector<Tensor> tensors) override {
    return rendezvous_.all_reduce(rank_, std::move(tensors));
  }
  [[nodiscard]] double all_reduce(double value) override {
    return rendezvous_.all_reduce(rank_, value);
  }

 private:
  Rendezvous& rendezvous_;
  std::size_t rank_;
  ThreadContext* before_;
};

}  // namespace braid::parallel
