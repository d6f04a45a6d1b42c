#pragma once
#include <cstdint>

#include <braid/core/max_rank.hpp>

namespace braid {

/// How a kernel walks its operands: collapsed dims, outermost first, strides in elements. Operand 0
/// is the output.
/// Ops build it from tensors whose extents were checked against their storage; merged dims make a
/// dense operand one dim.
struct Loop {
  static constexpr int kOperands = 4;
  int rank = 0;        // 0: one element
  std::int64_t n = 0;  // all elements; 0: nothing to do
  std::int64_t size[kMaxRank];
  std::int64_t stride[kOperands][kMaxRank];
  /// One dim, and every operand has stride 1.
  bool dense = false;
};

}  // namespace braid
