#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <braid/core/tensor.hpp>

// The sum over the virtual replicas of all ranks, in one fixed tree: ((0+1)+(2+3))+…
namespace braid::parallel::distributed {

/// Consecutive virtual replicas: [begin, end).
struct Interval {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Interval&, const Interval&) noexcept = default;
};

/// How the rows of a global batch are cut into virtual replicas, and these are dealt to ranks.
struct VirtualShare {
  std::int64_t rows = 0, replicas = 0;  ///< of all ranks
  int rank = 0, ranks = 1;
  friend bool operator==(const VirtualShare&, const VirtualShare&) noexcept = default;

  [[nodiscard]] Interval of_rank(std::int64_t r) const noexcept {
    return {r * replicas / ranks, (r + 1) * replicas / ranks};
  }
  [[nodiscard]] Interval mine() const noexcept { return of_rank(rank); }
  /// The first row of a virtual replica.
  [[nodiscard]] std::int64_t row(std::int64_t replica) const noexcept {
    return rows / replicas * replica + rows % replicas * replica / replicas;
  }
  /// The nodes of the tree that a rank can sum alone, as few as possible, in order.
  [[nodiscard]] std::vector<Interval> blocks(std::int64_t r) const;
  [[nodiscard]] std::vector<Interval> blocks() const { return blocks(rank); }
  [[nodiscard]] std::int64_t blocks_of_all() const;
};

/// Completes the tree: part(i) is the sum of block i, counted over all ranks in order.
[[nodiscard]] Tensor finish_tree(const VirtualShare& share,
                                 const std::function<Tensor(std::int64_t)>& part);

}  // namespace braid::parallel::distributed
