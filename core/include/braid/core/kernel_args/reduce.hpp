#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>
#include <braid/core/kernel_args/loop.hpp>

// Arguments of the reductions.
namespace braid {

enum class ReduceOp : std::uint8_t { sum, max, min, argmax, argmin };

/// For each element of `keep` (operand 0 = out, 1 = x), reduces over `over` (operand 1 = x). max
/// and min propagate NaN. argmax and argmin give the first index, row-major over the reduced dims;
/// then out is int64. sum of float16 and bfloat16 is computed in float32, multiplied by `scale`
/// (for mean) and rounded once. sum of bool, uint8, int32 and int64: out is int64. Empty sums are
/// 0; the op refuses empty max, min, argmax and argmin. Sums have a fixed order that does not
/// depend on threads.
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
