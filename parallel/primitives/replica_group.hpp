#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/replicas.hpp>

// Where the replicas of one forward meet: the last one to come does the work of all, as ordinary
// recorded ops over devices.
namespace braid::parallel {

class Meeting {
 public:
  Meeting(std::span<const Device> devices, bool shards);
  [[nodiscard]] std::size_t size() const noexcept { return devices_.size(); }
  [[nodiscard]] bool shards() const noexcept { return shards_; }

  [[nodiscard]] std::vector<Tensor> all_reduce(std::size_t rank, std::vector<Tensor> tensors);
  [[nodiscard]] double all_reduce(std::size_t rank, double value);
  /// The replica's error is only that others had ended: never the cause, so that it is not reported
  /// while there is another one.
  [[nodiscard]] bool left_alone(std::size_t rank) const noexcept { return left_alone_[rank]; }
  /// The replica has ended: who waits for it, or will, is told.
  void leave(std::size_t rank);

 private:
  /// Puts down `bring`, waits for all, and takes what `work` has made of it. `work` is called by
  /// the last one, with the lock held.
  enum class What : std::uint8_t { tensors, number };
  template <class Bring, class Work, class Take>
  auto meet(std::size_t rank, What what, const Bring& bring, const Work& work, const Take& take);
  void add_tensors();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Device> devices_;
  bool shards_;
  // [rank], first those that were brought, then the sums
  std::vector<std::vector<Tensor>> tensors_;
  std::vector<double> values_;    // likewise
  std::vector<What> brought_;     // [rank]
  std::vector<char> left_alone_;  // likewise; read when all have ended
  std::size_t arrived_ = 0;
  std::uint64_t meetings_ = 0;
  std::size_t left_ = 0, left_rank_ = 0;
  std::exception_ptr error_;  // of the last meeting
};

/// A replica's part in a meeting, while its call lives.
class MeetingScope final : public ReplicaGroup {
 public:
  MeetingScope(Meeting& meeting, std::size_t rank);
  ~MeetingScope() override;
  MeetingScope(const MeetingScope&) = delete;
  MeetingScope& operator=(const MeetingScope&) = delete;
  [[nodiscard]] std::size_t size() const noexcept override { return meeting_.size(); }
  [[nodiscard]] std::size_t rank() const noexcept override { return rank_; }
  [[nodiscard]] bool shards() const noexcept override { return meeting_.shards(); }
  [[nodiscard]] std::vector<Tensor> all_reduce(std::vector<Tensor> tensors) override {
    return meeting_.all_reduce(rank_, std::move(tensors));
  }
  [[nodiscard]] double all_reduce(double value) override {
    return meeting_.all_reduce(rank_, value);
  }

 private:
  Meeting& meeting_;
  std::size_t rank_;
  ReplicaGroup* before_;
};

}  // namespace braid::parallel
