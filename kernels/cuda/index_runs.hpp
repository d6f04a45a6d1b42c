#pragma once
#include <braid/core/internal/kernel_args/index.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

struct FaultSite;

/// Rows with sorted keys: entry i is row places[i], of key keys[i].
struct SortedRows {
  const std::int64_t* keys;
  const std::int64_t* places;
  const void* rows;
  std::int64_t entries;
};
/// Adds each row to the row of the table that its key names, of a contiguous [table_rows, width]
/// of any dtype; a key of table_rows or more is left out. Sums each run of equal keys in float32 or
/// float64, and rounds once; integers wrap around, and bool is logical or. Balanced for any keys.
void add_sorted_rows(const char* op, DType dtype, void* table, std::int64_t table_rows,
                     std::int64_t width, const SortedRows& sorted, Stream& stream);

/// scatter_add_rows of a floating-point dtype: sorts the indices for add_sorted_rows.
void scatter_add_runs(const ScatterAddRowsArgs& args, const FaultSite& site, Stream& stream);

}  // namespace braid::cuda
