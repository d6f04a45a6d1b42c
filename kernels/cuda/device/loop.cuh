#pragma once
#include "cuda/device/element.cuh"

// A Loop as kernels want it: innermost dim first, and divisions of small numbers by multiplication.
namespace braid::cuda {

/// Division by a fixed number; below 2^31 as a multiplication and a shift (Granlund and Montgomery 1994).
struct Divider {
  std::int64_t divisor = 1;
  std::uint32_t magic = 1, shift = 0;
  Divider() = default;
  explicit Divider(std::int64_t d) : divisor(d) {
    if (d < 1 || d >= std::int64_t{1} << 31) return;  // divided by in full
    while ((std::int64_t{1} << shift) < d) ++shift;
    magic = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - static_cast<std::uint64_t>(d)) << 32) / static_cast<std::uint64_t>(d) + 1);
  }
  /// `narrow`: 0 <= x < 2^31 and the divisor too.
  BRAID_DEVICE std::int64_t divide(std::int64_t x, bool narrow) const {
    if (!narrow) return x / divisor;
    const std::uint32_t small = static_cast<std::uint32_t>(x);
    const std::uint32_t high = static_cast<std::uint32_t>((static_cast<std::uint64_t>(small) * magic) >> 32);
    return static_cast<std::int64_t>((high + small) >> shift);
  }
};

/// Element offsets of K operands.
template <int K>
struct Offsets {
  std::int64_t at[K];
};

template <int K>
struct DeviceLoop {
  std::int64_t n = 1;
  int rank = 0;
  bool narrow = true;  // n < 2^31
  Divider size[kMaxRank];
  std::int64_t stride[K][kMaxRank];
};

/// Of operands `first` to first + K - 1.
template <int K>
DeviceLoop<K> make_loop(const Loop& loop, int first = 0) {
  DeviceLoop<K> result;
  result.n = loop.n;
  result.rank = loop.rank;
  result.narrow = loop.n < std::int64_t{1} << 31;
  for (int d = 0; d < kMaxRank; ++d) {
    const bool used = d < loop.rank;
    if (used) result.size[d] = Divider(loop.size[loop.rank - 1 - d]);
    for (int k = 0; k < K; ++k) result.stride[k][d] = used ? loop.stride[first + k][loop.rank - 1 - d] : 0;
  }
  return result;
}

/// Of element i, counted row-major.
template <int K>
BRAID_DEVICE Offsets<K> offsets_of(const DeviceLoop<K>& loop, std::int64_t i) {
  Offsets<K> offsets;
  for (int k = 0; k < K; ++k) offsets.at[k] = 0;
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
template <int K>
BRAID_DEVICE Offsets<K> same_offsets(std::int64_t i) {
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

/// This thread's number in a grid of one dim, and how many there are.
BRAID_DEVICE std::int64_t grid_thread() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
BRAID_DEVICE std::int64_t grid_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

}  // namespace braid::cuda
