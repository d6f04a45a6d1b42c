#include <braid/data/sampler.hpp>

#include <new>
#include <numeric>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/philox.hpp>

namespace braid::data {
namespace {

// Far from the streams that the random factories use, so that a shuffle never uses the random
// numbers of a model.
constexpr std::uint64_t kShuffleStream = std::uint64_t{0x73687566666c65} << 8;

}  // namespace

std::vector<std::int64_t> SequentialSampler::indices(std::int64_t size,
                                                     std::int64_t /*epoch*/) const {
  std::vector<std::int64_t> order;
  const std::size_t most = order.max_size();
  if (size < 0 || static_cast<std::uint64_t>(size) > most)
    throw ArgumentError(str("sampler: expected a dataset of 0 to ", most,
                            " items, as many indices as a list can hold, got ", size));
  try {
    order.resize(static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    const MemoryStats now = memory_stats(Device());
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(std::int64_t);
    throw OutOfMemoryError(Device(), bytes, now.in_use, now.cached, now.capacity,
                           str("the order of a dataset of ", size, " items"));
  }
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

std::vector<std::int64_t> RandomSampler::indices(std::int64_t size, std::int64_t epoch) const {
  std::vector<std::int64_t> order = SequentialSampler{}.indices(size, epoch);
  const std::uint64_t stream = kShuffleStream + static_cast<std::uint64_t>(epoch);
  const auto n = static_cast<std::uint64_t>(size);
  PhiloxBlock block{};
  // Swaps element i with a random one in [i, n). Draw i is half (i % 2) of block i / 2.
  for (std::uint64_t i = 0; i + 1 < n; ++i) {
    if (i % 2 == 0) block = philox(seed, stream, i / 2);
    const std::uint64_t draw = i % 2 == 0
                                   ? block.w[0] | static_cast<std::uint64_t>(block.w[1]) << 32
                                   : block.w[2] | static_cast<std::uint64_t>(block.w[3]) << 32;
    std::swap(order[i], order[i + multiply_high(draw, n - i)]);
  }
  return order;
}

}  // namespace braid::data
