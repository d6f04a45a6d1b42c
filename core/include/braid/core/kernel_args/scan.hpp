#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the cumulative sums and products.
namespace braid {

enum class ScanOp : std::uint8_t { sum, prod, recurrence };

/// Cumulative results along the middle dim of contiguous [outer, n, inner], from the first j on, or
/// with `reverse` from the last j down.
/// sum: y_j = y_{j-1} + x_j; prod: y_j = y_{j-1} * x_j; recurrence: y_j = a_j * y_{j-1} + x_j, with
/// 0 before the first. `a` is null for the other two. Floating point, or int64, which wraps around.
/// Floating-point results are computed in float64 and rounded once. The order is fixed: it depends
/// only on the sizes.
struct ScanArgs {
  ScanOp op;
  DType dtype;
  const void* x;
  const void* a;
  void* y;
  std::int64_t outer, n, inner;
  bool reverse;
};

}  // namespace braid
