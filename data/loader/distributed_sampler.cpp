#include <algorithm>

#include <braid/core/error.hpp>
#include <braid/data/sampler.hpp>

namespace braid::data {

DistributedSampler::DistributedSampler(int rank, int size, const DistributedSamplerOptions& options)
    : rank_(rank), size_(size), options_(options) {
  if (size < 1)
    throw ArgumentError(str("DistributedSampler: expected at least one rank, got ", size));
  if (rank < 0 || rank >= size)
    throw ArgumentError(str("DistributedSampler: Invalid rank ", rank,
                            ", rank should be in the interval [0, ", size - 1, "]"));
}

std::int64_t DistributedSampler::count(std::int64_t size, std::int64_t batch_size) const {
  if (!options_.consecutive)
    return options_.drop_last ? size / size_ : size / size_ + (size % size_ != 0 ? 1 : 0);
  if (batch_size < 1)
    throw ArgumentError(str("DistributedSampler: expected batch_size >= 1, got ", batch_size));
  std::int64_t global = 0;
  if (__builtin_mul_overflow(batch_size, size_, &global)) global = size + 1;  // one batch, not full
  const std::int64_t rest = size % global, whole = size / global * batch_size;
  if (rest == 0 || options_.drop_last) return whole;
  if (rest < size_)
    throw ArgumentError(
        str("DistributedSampler: expected the last global batch to have an item for "
            "each of ",
            size_, " ranks, got ", rest, " (", size, " items in batches of ", global,
            "); drop_last = true leaves it out"));
  // ⌊(rank + 1) rest / size⌋ - ⌊rank rest / size⌋, without an overflow
  return whole + rest / size_ * (rank_ + 1) - rest / size_ * rank_ +
         (rest % size_ * (rank_ + 1) / size_ - rest % size_ * rank_ / size_);
}

std::vector<std::int64_t> DistributedSampler::indices(std::int64_t size, std::int64_t epoch,
                                                      std::int64_t batch_size) const {
  const auto mine = static_cast<std::size_t>(count(std::max<std::int64_t>(size, 0), batch_size));
  const std::vector<std::int64_t> all = options_.shuffle
                                            ? RandomSampler{options_.seed}.indices(size, epoch)
                                            : SequentialSampler{}.indices(size, epoch);
  std::vector<std::int64_t> list;
  list.reserve(mine);
  const auto ranks = static_cast<std::size_t>(size_), rank = static_cast<std::size_t>(rank_);
  if (!options_.consecutive) {
    for (std::size_t i = 0; i < mine; ++i) list.push_back(all[(i * ranks + rank) % all.size()]);
    return list;
  }
  const auto block = static_cast<std::size_t>(batch_size);
  std::size_t begin = 0;
  while (list.size() + block <= mine && (all.size() - begin) / ranks >= block) {
    for (std::size_t i = 0; i < block; ++i) list.push_back(all[begin + rank * block + i]);
    begin += block * ranks;
  }
  const std::size_t rest = all.size() - begin,
                    first = rest / ranks * rank + rest % ranks * rank / ranks;
  for (std::size_t i = 0; list.size() < mine; ++i) list.push_back(all[begin + first + i]);
  return list;
}

}  // namespace braid::data
