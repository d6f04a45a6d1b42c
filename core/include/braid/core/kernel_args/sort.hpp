#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What the sorts are asked for.
namespace braid {

/// The first k elements of each of the dense [rows, n] in order, 1 <= k <= n, and their places:
/// values and index are dense [rows, k]. Any dtype. Stable, ascending and descending: of equal
/// elements the earlier comes first. NaN counts as larger than all others, -0 as equal to 0.
struct SortArgs {
  DType dtype;
  const void* x;
  void* values;
  std::int64_t* index;
  std::int64_t rows, n, k;
  bool descending;
};

}  // namespace braid
