#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What the running sums and products are asked for.
namespace braid {

enum class ScanOp : std::uint8_t { sum, prod, recurrence };

/// Running results along the middle of dense [outer, n, inner], in order of j, or from the last j
/// down with `reverse`:
/// sum: y_j = y_{j-1} + x_j; prod: y_j = y_{j-1} * x_j; recurrence: y_j = a_j * y_{j-1} + x_j, with
/// 0 before the first. `a` is null for the other two. Floating point, or int64, which wraps around.
/// Everything floating is computed in float64 and rounded once. The order is fixed: it depends on
/// the sizes alone.
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
