#pragma once
#include <braid/core/internal/kernel_args/optim.hpp>

#include "cuda/device/element.cuh"
#include "cuda/device/run.cuh"

// Lists of parameters. The elements of many items are split into one sequence of tiles, so that
// many small parameters are one launch. The list is passed in the kernel's arguments, without an
// allocation or a copy.
namespace braid::cuda {

// per launch: the kernel's arguments stay under 4 KiB, and under the 32 764 bytes that CUDA allows
// from 12.1 on
inline constexpr int kFewItems = 60, kManyItems = 540;
inline constexpr std::int64_t kStepTile = 2048;  // elements

template <int N> struct StepItems {
  OptimItem item[N];
  std::int64_t first_tile[N];
  std::int64_t tiles;
  int count;
};

/// The elements of a tile: `count` of one item, from `begin` on.
struct TileOfItem {
  const OptimItem* item;
  std::int64_t begin;
  int count;
};
template <int N> BRAID_DEVICE TileOfItem tile_of(const StepItems<N>& items, std::int64_t tile) {
  int low = 0;  // the last item that starts at or before the tile
  for (int high = items.count; high - low > 1;) {
    const int middle = (low + high) / 2;
    if (items.first_tile[middle] <= tile) low = middle;
    else high = middle;
  }
  const OptimItem& item = items.item[low];
  const std::int64_t begin = (tile - items.first_tile[low]) * kStepTile, left = item.n - begin;
  return {&item, begin, static_cast<int>(left < kStepTile ? left : kStepTile)};
}

/// Calls launch(items) for each N items that are not empty.
template <int N, class F> void in_lists_of(const OptimItem* list, std::int64_t count, F launch) {
  StepItems<N> items{};
  for (std::int64_t i = 0; i < count; ++i) {
    if (list[i].n <= 0) continue;
    items.item[items.count] = list[i];
    items.first_tile[items.count] = items.tiles;
    items.tiles += (list[i].n - 1) / kStepTile + 1;
    if (++items.count < N) continue;
    launch(items);
    items.tiles = 0, items.count = 0;
  }
  if (items.count > 0) launch(items);
}
/// One launch for up to kManyItems items.
template <class F> void in_lists(const OptimItem* list, std::int64_t count, F launch) {
  if (count <= kFewItems) in_lists_of<kFewItems>(list, count, launch);
  else in_lists_of<kManyItems>(list, count, launch);
}

}  // namespace braid::cuda
