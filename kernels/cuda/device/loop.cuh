#pragma once
#include <braid/core/kernel_args/loop.hpp>

#include "cuda/device/element.cuh"

// A Loop in the form that kernels use: innermost dim first; small numbers are divided by
// multiplication.
namespace braid::cuda {

/// Division by a fixed number; below 2^31 by a multiplication and a shift (Granlund and Montgomery
/// 1994).
struct Divider {
  std::int64_t divisor = 1;
  std::uint32_t magic = 1, shift = 0;
  Divider() = default;
  explicit Divider(std::int64_t d) : divisor(d) {
    if (d < 1 || d >= std::int64_t{1} << 31) return;  // needs the full division
    while ((std::int64_t{1} << shift) < d) ++shift;
    magic = static_cast<std::uint32_t>(
        (((std::uint64_t{1} << shift) - static_cast<std::uint64_t>(d)) << 32) /
            static_cast<std::uint64_t>(d) +
        1);
  }
  /// Requires 0 <= x < 2^31 and a divisor below 2^31 if `narrow`.
  BRAID_DEVICE std::int64_t divide(std::int64_t x, bool narrow) const {
    if (!narrow) return x / divisor;
    return static_cast<std::int64_t>(divide_narrow(static_cast<std::uint32_t>(x)));
  }
  BRAID_DEVICE std::uint32_t divide_narrow(std::uint32_t x) const {
    const std::uint32_t high =
        static_cast<std::uint32_t>((static_cast<std::uint64_t>(x) * magic) >> 32);
    return (high + x) >> shift;
  }
};

/// Element offsets of K operands.
template <int K> struct Offsets {
  std::int64_t at[K];
};

template <int K> struct DeviceLoop {
  std::int64_t n = 1;
  int rank = 0;
  bool narrow = true;   // n < 2^31
  bool compact = true;  // narrow, and all |offsets| < 2^31
  Divider size[kMaxRank];
  std::int64_t stride[K][kMaxRank];
};

/// The loop of operands [first, first + K).
template <int K> DeviceLoop<K> make_loop(const Loop& loop, int first = 0) {
  DeviceLoop<K> result;
  result.n = loop.n;
  result.rank = loop.rank;
  result.narrow = result.compact = loop.n < std::int64_t{1} << 31;
  for (int d = 0; d < kMaxRank; ++d) {
    const bool used = d < loop.rank;
    if (used) result.size[d] = Divider(loop.size[loop.rank - 1 - d]);
    for (int k = 0; k < K; ++k)
      result.stride[k][d] = used ? loop.stride[first + k][loop.rank - 1 - d] : 0;
  }
  for (int k = 0; k < K && result.compact; ++k) {
    // the largest |offset|; a term is below 2^62, and a large one ends the loop
    std::int64_t reach = 0;
    for (int d = 0; d < loop.rank && reach < std::int64_t{1} << 31; ++d) {
      const std::int64_t stride =
          result.stride[k][d] < 0 ? -result.stride[k][d] : result.stride[k][d];
      reach = stride < std::int64_t{1} << 31 ? reach + (loop.size[loop.rank - 1 - d] - 1) * stride
                                             : INT64_MAX;
    }
    result.compact = reach < std::int64_t{1} << 31;
  }
  return result;
}

/// The offsets of element i in row-major order.
template <int K> BRAID_DEVICE Offsets<K> offsets_of(const DeviceLoop<K>& loop, std::int64_t i) {
  Offsets<K> offsets;
  if (loop.compact) {  // in 32 bits, computed modulo 2^32
    std::uint32_t rest = static_cast<std::uint32_t>(i), at[K];
    for (int k = 0; k < K; ++k) at[k] = 0;
#pragma unroll(K == 1 ? 1 : 2)
    for (int d = 0; d < loop.rank; ++d) {
      std::uint32_t index = rest;
      if (d + 1 < loop.rank) {
        rest = loop.size[d].divide_narrow(rest);
        index -= rest * static_cast<std::uint32_t>(loop.size[d].divisor);
      }
      for (int k = 0; k < K; ++k) at[k] += index * static_cast<std::uint32_t>(loop.stride[k][d]);
    }
    for (int k = 0; k < K; ++k) offsets.at[k] = static_cast<std::int32_t>(at[k]);
    return offsets;
  }
  for (int k = 0; k < K; ++k) offsets.at[k] = 0;
#pragma unroll 1
  for (int d = 0; d < loop.rank; ++d) {
    std::int64_t index = i;
    if (d + 1 < loop.rank) {
      i = loop.size[d].divide(i, loop.narrow);
      index -= i * loop.size[d].divisor;
    }
    for (int k = 0; k < K; ++k) offsets.at[k] += index * loop.stride[k][d];
  }
  return offsets;
}
template <int K> BRAID_DEVICE Offsets<K> same_offsets(std::int64_t i) {
  Offsets<K> offsets;
  for (int k = 0; k < K; ++k) offsets.at[k] = i;
  return offsets;
}

/// The loop of a scalar.
inline Loop one_element() {
  Loop loop{};
  loop.n = 1;
  return loop;
}

/// This thread's index in a grid of one dim, and the number of threads.
BRAID_DEVICE std::int64_t grid_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
BRAID_DEVICE std::int64_t grid_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace braid::cuda
