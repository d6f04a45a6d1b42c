#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the search in sorted rows.
namespace braid {

/// For each element v of contiguous values [rows, m]: the number of elements of its row of the
/// sequence that a binary search (the middle of [a, b) is a + (b - a) / 2) finds before v: those
/// that are not >= v, or with `right` not > v. Row r of the sequence begins at r * step and has n
/// elements; step is 0 if all rows are one. Any dtype but bool.
struct SearchsortedArgs {
  DType dtype;
  const void* sequence;
  const void* values;
  std::int64_t* index;
  std::int64_t rows, m, n, step;
  bool right;
};

}  // namespace braid
