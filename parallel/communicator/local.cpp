#include "communicator/local.hpp"

#include <algorithm>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/storage.hpp>
#include <braid/parallel/devices.hpp>

#include "copies.hpp"
#include "primitives/tree_sum.hpp"
#include "workers.hpp"

namespace braid::parallel {
namespace {

// elements: the tile of one addition stays in the L1 and L2 caches
constexpr std::int64_t kTile = 16 * 1024;
// bytes: a copy of this size is made by the worker itself, not by its device's helper threads
constexpr std::size_t kCopyPart = 1024 * 1024;
// elements: the tile that is copied before it is added
constexpr std::int64_t kStagedTile = 1024 * 1024;

std::vector<Device> checked(std::vector<Device> devices) {
  if (devices.empty())
    throw ArgumentError("make_local_communicator: expected at least one device, got none");
  return devices;
}

/// Copies bytes [begin, end) of a buffer.
void copy_bytes(const BufferView& to, const BufferView& from, std::size_t begin, std::size_t end) {
  copy_flat(static_cast<char*>(to.data) + begin, to.device,
            static_cast<const char*>(from.data) + begin, from.device, end - begin);
}

BufferView part(const BufferView& whole, std::int64_t begin, std::int64_t end) {
  BufferView view = whole;
  if (view.data)
    view.data =
        static_cast<char*>(whole.data) + static_cast<std::size_t>(begin) * size_of(whole.dtype);
  view.count = end - begin;
  return view;
}

/// True if the result is the buffer of rank 2 or later. The tree writes sums into `out` before it
/// reads these buffers.
bool read_late(std::span<const BufferView> ranks, const BufferView& result) {
  for (std::size_t rank = 2; rank < ranks.size(); ++rank)
    if (ranks[rank].data == result.data) return true;
  return false;
}

/// Copies the sum to the result if it is elsewhere: with data from a single rank, the sum is that
/// rank's buffer.
void finish(const BufferView& result, const void* sum) {
  if (sum != result.data) copy_flat(result.data, result.device, sum, result.device, result.bytes());
}

}  // namespace

LocalCommunicator::LocalCommunicator(std::vector<Device> group, bool stage)
    : Communicator(checked(group), static_cast<int>(group.size())), host_(!stage) {
  for (const Device d : devices()) host_ = host_ && device_context(d).host_memory;
  workers_ = distinct(devices());
}

void LocalCommunicator::do_broadcast(std::span<const BufferView> buffers) {
  const std::size_t ranks = devices().size();
  std::size_t total = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) total += i % ranks ? buffers[i].bytes() : 0;
  if (!host_) {
    for_each_device(devices(), total, [&](std::size_t rank) {
      for (std::size_t i = rank; rank && i < buffers.size(); i += ranks)
        copy_bytes(buffers[i], buffers[i - rank], 0, buffers[i].bytes());
    });
    return;
  }
  // All copies, laid end to end, are divided into equal parts at cache line boundaries.
  constexpr std::size_t kLine = 64;
  const std::size_t share =
      ((total + workers_.size() - 1) / workers_.size() + kLine - 1) / kLine * kLine;
  for_each_device(workers_, total, [&](std::size_t worker) {
    const std::size_t begin = worker * share, end = begin + share;
    std::size_t at = 0;
    for (std::size_t i = 0; i < buffers.size() && at < end; ++i) {
      if (i % ranks == 0) continue;
      const std::size_t bytes = buffers[i].bytes(), from = std::max(at, begin),
                        to = std::min(at + bytes, end);
      for (std::size_t part = from; part < to; part += kCopyPart)
        copy_bytes(buffers[i], buffers[i - i % ranks], part - at,
                   std::min(part + kCopyPart, to) - at);
      at += bytes;
    }
  });
}

void LocalCommunicator::do_reduce(std::span<const BufferView> buffers,
                                  std::span<const BufferView> results) {
  if (host_) sum_in_place(buffers, results);
  else sum_staged(0, 1, buffers, results);
}

void LocalCommunicator::do_all_reduce(std::span<const BufferView> buffers) {
  std::vector<BufferView> results;
  for (std::size_t i = 0; i < buffers.size(); i += devices().size()) results.push_back(buffers[i]);
  do_reduce(buffers, results);
  do_broadcast(buffers);
}

void LocalCommunicator::do_all_gather(std::span<const BufferView> buffers,
                                      std::span<const BufferView> results) {
  const std::size_t ranks = devices().size();
  std::size_t total = 0;
  for (const BufferView& result : results) total += result.bytes();
  for_each_device(devices(), total, [&](std::size_t rank) {
    for (std::size_t i = rank; i < results.size(); i += ranks) {
      for (std::size_t from = 0; from < ranks; ++from) {
        const BufferView& source = buffers[i - rank + from];
        const auto begin = static_cast<std::int64_t>(from) * source.count;
        const BufferView target = part(results[i], begin, begin + source.count);
        if (target.data != source.data) copy_bytes(target, source, 0, source.bytes());
      }
    }
  });
}

void LocalCommunicator::do_reduce_scatter(std::span<const BufferView> buffers,
                                          std::span<const BufferView> results) {
  const std::size_t ranks = devices().size();
  std::vector<BufferView> parts;  // each result is the sum of a separate item
  std::size_t total = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(i % ranks);
    for (std::size_t from = 0; from < ranks; ++from)
      parts.push_back(part(buffers[i - i % ranks + from], rank * results[i].count,
                           (rank + 1) * results[i].count));
    total += buffers[i].bytes();
  }
  if (host_) sum_in_place(parts, results);
  else
    for_each_device(devices(), total,
                    [&](std::size_t rank) { sum_staged(rank, ranks, parts, results); });
}

void LocalCommunicator::do_all_to_all(std::span<const BufferView> buffers,
                                      std::span<const BufferView> results) {
  const std::size_t ranks = devices().size();
  std::size_t total = 0;
  for (const BufferView& result : results) total += result.bytes();
  for_each_device(devices(), total, [&](std::size_t rank) {
    for (std::size_t i = rank; i < results.size(); i += ranks) {
      const std::int64_t count = results[i].count / static_cast<std::int64_t>(ranks),
                         own = static_cast<std::int64_t>(rank) * count;
      for (std::size_t from = 0; from < ranks; ++from) {
        const BufferView source = part(buffers[i - rank + from], own, own + count);
        const auto begin = static_cast<std::int64_t>(from) * count;
        copy_bytes(part(results[i], begin, begin + count), source, 0, source.bytes());
      }
    }
  });
}

void LocalCommunicator::sum_in_place(std::span<const BufferView> buffers,
                                     std::span<const BufferView> results) {
  const std::size_t ranks = devices().size();
  std::size_t total = 0;
  for (const BufferView& buffer : buffers) total += buffer.bytes();
  std::int64_t tiles = 0;
  for (const BufferView& result : results) tiles += (result.count + kTile - 1) / kTile;
  const auto workers = static_cast<std::int64_t>(workers_.size());
  for_each_device(workers_, total, [&](std::size_t worker) {
    // The worker's kernels and thread are used; all workers can access the memory.
    const Device device = workers_[worker];
    const std::int64_t begin = tiles * static_cast<std::int64_t>(worker) / workers,
                       end = tiles * static_cast<std::int64_t>(worker + 1) / workers;
    // Two ranks need no scratch.
    const Ref<Storage> scratch = Storage::allocate(
        tree_levels(ranks) > 1 ? (tree_levels(ranks) + 1) * kTile * sizeof(double) : 0, device);
    char* const sums = scratch->data() == nullptr ? nullptr
                                                  : static_cast<char*>(scratch->data()) +
                                                        tree_levels(ranks) * kTile * sizeof(double);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < results.size() && at < end; ++i) {
      const std::int64_t count = (results[i].count + kTile - 1) / kTile;
      const bool late = read_late(buffers.subspan(i * ranks, ranks), results[i]);
      for (std::int64_t tile = std::max(begin - at, std::int64_t{0});
           tile < std::min(count, end - at); ++tile) {
        const std::int64_t from = tile * kTile, to = std::min(from + kTile, results[i].count);
        const BufferView result = part(results[i], from, to);
        const auto source = [&](std::size_t rank) -> const void* {
          return part(buffers[i * ranks + rank], from, to).data;
        };
        finish(result, tree_sum(device, source, 0, ranks, late ? sums : result.data,
                                static_cast<char*>(scratch->data()), to - from, result.dtype));
      }
      at += count;
    }
  });
}

void LocalCommunicator::sum_staged(std::size_t root_rank, std::size_t step,
                                   std::span<const BufferView> buffers,
                                   std::span<const BufferView> results) {
  const std::size_t ranks = devices().size();
  const Device root = devices()[root_rank];
  std::int64_t longest = 0;
  for (std::size_t i = root_rank; i < results.size(); i += step)
    longest = std::max(longest, std::min(results[i].count, kStagedTile));
  const std::size_t tile_bytes = static_cast<std::size_t>(longest) * sizeof(double);
  const Ref<Storage> scratch =
      Storage::allocate((tree_levels(ranks) + 1 + ranks) * tile_bytes, root);
  char* const sums = static_cast<char*>(scratch->data()) + tree_levels(ranks) * tile_bytes;
  char* const staged = sums + tile_bytes;
  for (std::size_t i = root_rank; i < results.size(); i += step) {
    const bool late = read_late(buffers.subspan(i * ranks, ranks), results[i]);
    for (std::int64_t from = 0; from < results[i].count; from += kStagedTile) {
      const std::int64_t to = std::min(from + kStagedTile, results[i].count);
      const BufferView result = part(results[i], from, to);
      const auto source = [&](std::size_t rank) -> const void* {
        const BufferView tile = part(buffers[i * ranks + rank], from, to);
        if (rank == root_rank || !tile.data) return tile.data;
        BufferView copy = tile;
        copy.data = staged + rank * tile_bytes;
        copy.device = root;
        copy_bytes(copy, tile, 0, tile.bytes());
        return copy.data;
      };
      finish(result, tree_sum(root, source, 0, ranks, late ? sums : result.data,
                              static_cast<char*>(scratch->data()), to - from, result.dtype));
    }
  }
}

std::unique_ptr<Communicator> make_local_communicator(std::vector<Device> devices) {
  check_devices("make_local_communicator", devices);
  return std::make_unique<LocalCommunicator>(std::move(devices));
}

}  // namespace braid::parallel
