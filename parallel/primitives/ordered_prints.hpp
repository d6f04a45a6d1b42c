#pragma once
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace braid::parallel {

/// Writes the lines that replicas print in replica order (PrintOrder::replica). A replica's lines
/// are written when it and all replicas before it have ended.
class OrderedPrints {
 public:
  explicit OrderedPrints(std::size_t replicas) : texts_(replicas), ended_(replicas) {}
  OrderedPrints(const OrderedPrints&) = delete;
  OrderedPrints& operator=(const OrderedPrints&) = delete;

  /// Returns the buffer for the replica's lines.
  [[nodiscard]] std::string& text_of(std::size_t replica) { return texts_[replica]; }
  void end(std::size_t replica) noexcept;

 private:
  std::mutex mutex_;  // guards what follows; a text belongs to its replica until that ends
  std::vector<std::string> texts_;
  std::vector<bool> ended_;
  std::size_t next_ = 0;  // the replica whose lines are written next
};

}  // namespace braid::parallel
