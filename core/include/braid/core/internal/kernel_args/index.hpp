#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/internal/kernel_args/loop.hpp>

// Arguments of the kernels that read or write by index.
namespace braid {

/// out[i, :] = table[index[i], :], contiguous, any dtype. Indices lie in [0, table_rows) or, with
/// wrap, in [-table_rows, table_rows), where negative ones count from the end. Others throw
/// IndexError on the CPU before anything is written.
struct GatherRowsArgs {
  DType dtype;
  const void* table;
  const std::int64_t* index;
  void* out;
  std::int64_t table_rows, rows, width;
  const char* op = "gather_rows" /* for errors */;
  bool wrap = false;
};

/// table[index[i], :] += dy[i, :]; the op has zeroed the table. The sum of each row has a fixed
/// order: that of i, each sum rounded to the dtype, or that of a CUDA device, which rounds once.
/// Same checks as GatherRowsArgs with wrap.
struct ScatterAddRowsArgs {
  DType dtype;
  void* table;
  const std::int64_t* index;
  const void* dy;
  std::int64_t table_rows, rows, width;
};

/// out[o] = x at o, but with the position along one dim replaced by index[o]; any dtype. The loop
/// runs over the index: operands 0 = out, 1 = index, 2 = x with stride 0 along that dim, where x
/// has `size` elements `step` apart. Indices lie in [0, size); others throw IndexError on the CPU
/// before anything is written.
struct GatherArgs {
  DType dtype;
  void* out;
  const std::int64_t* index;
  const void* x;
  Loop loop;
  std::int64_t size, step;
  const char* op = "gather" /* for errors */;
};

/// The inverse of GatherArgs: for j = 0 … m - 1, in this order, out[l, index[l, j]] = src[l, j], or
/// with `add` += (each sum is rounded to the dtype; integers wrap around; bool is logical or). So
/// of equal indices the last wins, and sums have a fixed order. A CUDA device may take the sums of
/// long lines in another fixed order, and round once. `lines` runs over the dims other than that of
/// j: operands 0 = out, 1 = index, 2 = src; along j they advance by index_step and src_step, and
/// out has `size` elements `step` apart. Same checks as gather. src may have strides of 0.
struct ScatterArgs {
  DType dtype;
  bool add;
  void* out;
  const std::int64_t* index;
  const void* src;
  Loop lines;
  std::int64_t m, index_step, src_step;
  std::int64_t size, step;
  const char* op = "scatter" /* for errors */;
};

}  // namespace braid
