#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What dropout is asked for.
namespace braid {

/// Dense [outer, rows, inner]. The word of element (o, r, i) is word e % 4 of Philox block e / 4 of
/// (seed, stream), e = (first_row + r) outer inner + o inner + i: its row in the whole batch first,
/// then its place in the row. y = x * scale where the word is at least `threshold`, else x * 0.
struct DropoutArgs {
  DType dtype;
  const void* x;
  void* y;
  std::int64_t outer, rows, inner, first_row;
  std::uint64_t seed, stream;
  std::uint64_t threshold;  // 0 … 2^32
  double scale;
};

}  // namespace braid
