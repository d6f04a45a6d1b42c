#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/kernel_args/loop.hpp>

// What the reductions are asked for.
namespace braid {

enum class ReduceOp : std::uint8_t { sum, max, min, argmax, argmin };

/// For each element of `keep` (operand 0 = out, 1 = x) reduces over `over` (operand 1 = x). max and
/// min propagate NaN; argmax gives the first index, counted row-major over the reduced dims, and
/// out is int64. sum of float16 and bfloat16 is taken in float32, then multiplied by `scale` (mean)
/// and rounded once. sum of bool, uint8, int32, int64: out is int64. Empty sums are 0; the op
/// refuses empty max, min, argmax. Sums have a fixed order that does not depend on threads.
struct ReduceArgs {
  ReduceOp op;
  DType dtype;
  void* out;
  const void* x;
  double scale;
  Loop keep;
  Loop over;
};

}  // namespace braid
