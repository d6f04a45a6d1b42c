#pragma once
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace braid::parallel {

/// What replicas print, written in their order (PrintOrder::replica): a replica's lines when it and
/// all before it have ended.
class OrderedPrints {
 public:
  explicit OrderedPrints(std::size_t replicas) : texts_(replicas), ended_(replicas) {}
  OrderedPrints(const OrderedPrints&) = delete;
  OrderedPrints& operator=(const OrderedPrints&) = delete;

  /// Where the replica's lines go.
  [[nodiscard]] std::string& text_of(std::size_t replica) { return texts_[replica]; }
  void end(std::size_t replica) noexcept;

 private:
  std::mutex mutex_;  // of what follows; a text is its replica's until that has ended
  std::vector<std::string> texts_;
  std::vector<bool> ended_;
  std::size_t next_ = 0;  // whose lines are written next
};

}  // namespace braid::parallel
