#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of dropout.
namespace braid {

struct RandomShift;  // random.hpp

/// Contiguous [outer, rows, inner]. Element (o, r, i) uses word e % 4 of Philox block e / 4 of
/// (seed, stream), where e = (first_row + r) outer inner + o inner + i: first the row in the whole
/// batch, then the index in the row. y = x * scale if the word is at least `threshold`, else
/// y = x * 0.
struct DropoutArgs {
  DType dtype;
  const void* x;
  void* y;
  std::int64_t outer, rows, inner, first_row;
  std::uint64_t seed, stream;
  std::uint64_t threshold;  // 0 … 2^32
  double scale;
  const RandomShift* shift = nullptr;  ///< on the device; null: none
};

}  // namespace braid
