#pragma once
#include "cuda/device/element.cuh"

// mma.sync m16n8k16 by element type. The accumulators of a fragment of 16 × 8: with g = lane / 4
// and t = lane % 4, sum[0] and sum[1] are row g, columns 2 t and 2 t + 1; sum[2] and sum[3] row g +
// 8.
namespace braid::cuda {

BRAID_DEVICE void multiply_fragments(float (&sum)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2], F16) {
  simt::mma_m16n8k16_fp16(sum, a, b, sum);
}
BRAID_DEVICE void multiply_fragments(float (&sum)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2], BF16) {
  simt::mma_m16n8k16_bf16(sum, a, b, sum);
}

/// Two numbers, rounded, in a register; x is in the lower half.
BRAID_DEVICE std::uint32_t rounded_pair(float x, float y, F16) {
  const simt::half2_t pair = __floats2half2_rn(x, y);
  std::uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}
BRAID_DEVICE std::uint32_t rounded_pair(float x, float y, BF16) {
  const simt::bfloat162_t pair = __floats2bfloat162_rn(x, y);
  std::uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

}  // namespace braid::cuda
