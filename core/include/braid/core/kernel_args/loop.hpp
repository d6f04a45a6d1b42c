#pragma once
#include <cstdint>

#include <braid/core/max_rank.hpp>

namespace braid {

/// How a kernel iterates over its operands: merged dims, outermost first, with strides in elements.
/// Operand 0 is the output. Ops build it from tensors whose sizes and strides were checked against
/// their storage. Merging turns a contiguous operand into one dim.
struct Loop {
  static constexpr int kOperands = 4;
  int rank = 0;        // 0: one element
  std::int64_t n = 0;  // number of elements; 0: nothing to do
  std::int64_t size[kMaxRank];
  std::int64_t stride[kOperands][kMaxRank];
  /// True if there is one dim and every operand has stride 1.
  bool dense = false;
};

}  // namespace braid
