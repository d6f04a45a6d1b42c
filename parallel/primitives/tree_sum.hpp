#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>
#include <braid/core/internal/kernel_args/elementwise.hpp>

// Sums over ranks in one fixed tree, on the kernels of a device: neighbours first, then pairs at
// distance 2, 4, …
namespace braid::parallel {

/// out = a op b, element by element; with b null, out = a op scalar. `out` may be an operand.
void compute_on(Device device, BinaryOp op, void* out, const void* a, const void* b,
                std::int64_t count, DType dtype, double scalar = 0);

/// The tiles of scratch memory that tree_sum needs; two ranks need none.
[[nodiscard]] inline std::size_t tree_levels(std::size_t ranks) {
  return static_cast<std::size_t>(std::bit_width(ranks - 1));
}

/// Sums a tile over ranks [first, first + count) in the fixed tree order. Returns where the sum is:
/// `out`, or a source if only that has data. Returns null if no rank has data. `source(rank)`
/// returns the tile of a rank, readable on `device`, or null. `scratch` holds one tile per level of
/// the tree. `out` is written before the tiles of ranks 2 and later are read.
template <class Source>
const void* tree_sum(Device device, const Source& source, std::size_t first, std::size_t count,
                     void* out, char* scratch, std::int64_t elements, DType dtype) {
  if (count == 1) return source(first);
  const std::size_t left = std::bit_floor(count - 1);  // the largest power of two below count
  const void* const a = tree_sum(device, source, first, left, out, scratch, elements, dtype);
  if (!a)
    return tree_sum(device, source, first + left, count - left, out, scratch, elements, dtype);
  // Two ranks have no scratch (null), so no pointer after it exists either.
  char* const below =
      count == 2 ? nullptr : scratch + static_cast<std::size_t>(elements) * size_of(dtype);
  const void* const b =
      tree_sum(device, source, first + left, count - left, scratch, below, elements, dtype);
  if (!b) return a;
  compute_on(device, BinaryOp::add, out, a, b, elements, dtype);
  return out;
}

}  // namespace braid::parallel
