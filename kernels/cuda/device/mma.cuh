#pragma once
#include "cuda/device/element.cuh"

// mma.sync by element type: m16n8k16 of 16 bits, m16n8k8 of TF32. The accumulators of a fragment of
// 16 × 8: with g = lane / 4 and t = lane % 4, sum[0] and sum[1] are row g, columns 2 t and 2 t + 1;
// sum[2] and sum[3] row g + 8.
namespace braid::cuda {

BRAID_DEVICE void multiply_fragments(float (&sum)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2], F16) {
  simt::mma_m16n8k16_fp16(sum, a, b, sum);
}
BRAID_DEVICE void multiply_fragments(float (&sum)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2], BF16) {
  simt::mma_m16n8k16_bf16(sum, a, b, sum);
}

BRAID_DEVICE void multiply_fragments(float (&sum)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2], F32) {
  simt::mma_m16n8k8_tf32(sum, a, b, sum);
}

/// A fragment as it is multiplied. With two parts, of float32, its numbers are the sums of two of
/// TF32.
template <int Parts> struct Fragment {
  std::uint32_t part[Parts][4];
};

/// Prepares a fragment that was read to part[0]: rounds float32 to TF32, whose numbers have 11
/// bits. Two parts together are exact to 2^-23 of the number.
template <class E, int Parts> BRAID_DEVICE void split(Fragment<Parts>& x) {
  if constexpr (std::is_same_v<E, F32>) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float whole = __uint_as_float(x.part[0][i]);
      x.part[0][i] = simt::to_tf32(whole);
      if constexpr (Parts == 2) x.part[1][i] = simt::to_tf32(whole - __uint_as_float(x.part[0][i]));
    }
  }
}
/// sum += a b, where b is one half of y. Of two parts, the small products come first, and the
/// product of the small parts is left out: it is below 2^-22 of the product.
template <class E, int Parts>
BRAID_DEVICE void multiply_parts(float (&sum)[4], const Fragment<Parts>& x,
                                 const Fragment<Parts>& y, int half) {
  const auto multiply = [&](int of_x, int of_y) {
    multiply_fragments(sum, x.part[of_x], {y.part[of_y][half * 2], y.part[of_y][half * 2 + 1]},
                       E{});
  };
  if constexpr (Parts == 2) multiply(1, 0), multiply(0, 1);
  multiply(0, 0);
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
