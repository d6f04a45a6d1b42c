#include "distributed/virtual_tree.hpp"

#include <bit>

#include <braid/core/ops/elementwise.hpp>

namespace braid::parallel::distributed {
namespace {

/// The number of leaves in the left branch of a node: the largest power of two below count.
std::int64_t left_of(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count - 1)));
}

/// Appends the largest nodes in the branch [begin, begin + count) that lie inside `whole`.
void append_blocks(std::int64_t begin, std::int64_t count, const Interval& whole,
                   std::vector<Interval>& blocks) {
  const std::int64_t end = begin + count;
  if (end <= whole.begin || begin >= whole.end) return;
  if (begin >= whole.begin && end <= whole.end) {
    blocks.push_back({begin, end});
    return;
  }
  const std::int64_t left = left_of(count);
  append_blocks(begin, left, whole, blocks);
  append_blocks(begin + left, count - left, whole, blocks);
}

Tensor finish(std::int64_t begin, std::int64_t count, const std::vector<Interval>& blocks,
              std::size_t& next, const std::function<Tensor(std::int64_t)>& part) {
  if (blocks[next] == Interval{begin, begin + count})
    return part(static_cast<std::int64_t>(next++));
  const std::int64_t left = left_of(count);
  const Tensor a = finish(begin, left, blocks, next, part);
  return add(a, finish(begin + left, count - left, blocks, next, part));
}

}  // namespace

std::vector<Interval> VirtualShare::blocks(std::int64_t r) const {
  std::vector<Interval> list;
  if (replicas > 0) append_blocks(0, replicas, of_rank(r), list);
  return list;
}

std::int64_t VirtualShare::blocks_of_all() const {
  std::int64_t count = 0;
  for (int r = 0; r < ranks; ++r) count += static_cast<std::int64_t>(blocks(r).size());
  return count;
}

Tensor finish_tree(const VirtualShare& share, const std::function<Tensor(std::int64_t)>& part) {
  std::vector<Interval> all;
  for (int r = 0; r < share.ranks; ++r)
    for (const Interval& block : share.blocks(r)) all.push_back(block);
  std::size_t next = 0;
  return finish(0, share.replicas, all, next, part);
}

}  // namespace braid::parallel::distributed
