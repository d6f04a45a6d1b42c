#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the sorts.
namespace braid {

/// The first k elements of each row of contiguous [rows, n] in sorted order, 1 <= k <= n, and their
/// indices; values and index are contiguous [rows, k]. Any dtype. Stable, ascending and descending:
/// equal elements keep their order. NaN counts as larger than all others, -0 as equal to 0.
struct SortArgs {
  DType dtype;
  const void* x;
  void* values;
  std::int64_t* index;
  std::int64_t rows, n, k;
  bool descending;
};

}  // namespace braid
