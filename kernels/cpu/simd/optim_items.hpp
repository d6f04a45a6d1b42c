#pragma once
#include <braid/core/internal/kernel_args/optim.hpp>

#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"

// The elements of a list of items, treated as one sequence that is split into tiles, so that many
// small parameters run as one job.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kStepTile = 8 * 1024;

// At most, so that scanning a long list of items stays cheap.
constexpr std::int64_t kMostTiles = 1024;

/// Calls f(item, begin, end, tile) for all elements of all items. Tiles split the sequence of all
/// items; a tile finds its first item by scanning the list. Returns the number of tiles.
template <class F>
BRAID_INLINE std::int64_t for_tiles(const OptimItem* items, std::int64_t count, Stream& stream,
                                    F f) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += items[i].n > 0 ? items[i].n : 0;
  if (total <= kStepTile) {
    for (std::int64_t i = 0; i < count; ++i)
      if (items[i].n > 0) f(items[i], 0, items[i].n, 0);
    return 1;
  }
  std::int64_t size = kStepTile;
  while (size * kMostTiles < total) size *= 2;
  const auto tile = [&](std::int64_t t) {
    std::int64_t skip = t * size, left = size;
    for (std::int64_t i = 0; i < count && left > 0; ++i) {
      const std::int64_t n = items[i].n > 0 ? items[i].n : 0;
      if (skip >= n) {
        skip -= n;
        continue;
      }
      const std::int64_t end = n - skip < left ? n : skip + left;
      f(items[i], skip, end, t);
      left -= end - skip;
      skip = 0;
    }
  };
  const std::int64_t tiles = (total + size - 1) / size;
  parallel_for(stream, tiles, tile);
  return tiles;
}
/// As for_tiles, for a function that does not ask for its tile.
template <class F>
BRAID_INLINE void for_items(const OptimItem* items, std::int64_t count, Stream& stream, F f) {
  (void)for_tiles(items, count, stream,
                  [&](const OptimItem& item, std::int64_t begin, std::int64_t end, std::int64_t) {
                    f(item, begin, end);
                  });
}

template <class E> BRAID_INLINE typename E::V load_lanes(const typename E::T* p, int k) {
  return k == E::kLanes ? E::load(p) : E::load_first(p, k);
}
template <class E> BRAID_INLINE void store_lanes(typename E::T* p, typename E::V v, int k) {
  if (k == E::kLanes) E::store(p, v);
  else E::store_first(p, v, k);
}

/// v * factor, rounded as if it were stored and read again. The compiler does not fuse the product
/// with a sum.
template <class E>
BRAID_INLINE typename E::V multiply_rounded(typename E::V v, typename E::V factor) {
  typename E::V product = v * factor;
  if constexpr (sizeof(typename E::T) == 2) return E::widen(E::narrow(product));
  asm("" : "+m"(product));
  return product;
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
