#pragma once
#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"

// Combines values over a warp or a block in a fixed tree. A joiner has `A join(A a, A b) const`,
// which must be commutative. Every thread gets the result.
namespace braid::cuda {

inline constexpr unsigned kFullWarp = 0xffffffffu;

BRAID_DEVICE int lane_of_thread() { return static_cast<int>(threadIdx.x % 32); }
BRAID_DEVICE int warp_of_thread() { return static_cast<int>(threadIdx.x / 32); }

template <class A> struct Sum {
  BRAID_DEVICE A join(A a, A b) const { return a + b; }
};
/// Ignores a NaN in b.
template <class A> struct MaxOfNumbers {
  BRAID_DEVICE A join(A a, A b) const { return b > a ? b : a; }
};

/// A warp: all 32 lanes take part in each join.
struct WarpGroup {
  static constexpr int kSize = 32;
  BRAID_DEVICE int rank() const { return lane_of_thread(); }
  template <class J, class A> BRAID_DEVICE A join(const J& joiner, A value) const {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      value = joiner.join(value, __shfl_xor_sync(kFullWarp, value, step));
    return value;
  }
};

/// A block of `threads`; `part` is shared memory for one value per warp.
template <class A, int threads = kThreads> struct BlockGroup {
  static constexpr int kSize = threads, kParts = threads / 32;
  A* part;
  BRAID_DEVICE int rank() const { return static_cast<int>(threadIdx.x); }
  template <class J> BRAID_DEVICE A join(const J& joiner, A value) const {
    value = WarpGroup{}.join(joiner, value);
    if (lane_of_thread() == 0) part[warp_of_thread()] = value;
    __syncthreads();
    value = part[lane_of_thread() % kParts];
#pragma unroll
    for (int step = kParts / 2; step > 0; step /= 2)
      value = joiner.join(value, __shfl_xor_sync(kFullWarp, value, step));
    __syncthreads();  // the next join writes `part` again
    return value;
  }
};

/// Σ f(j) for j in [0, n): each thread adds every kSize-th term in four partial sums, which are
/// then combined as a tree.
template <class A, class G, class F> BRAID_DEVICE A group_sum(const G& group, std::int64_t n, F f) {
  A sum[4] = {A(0), A(0), A(0), A(0)};
#pragma unroll 1
  for (std::int64_t j = group.rank(); j < n; j += 4 * G::kSize) {
#pragma unroll
    for (int u = 0; u < 4; ++u)
      if (j + u * G::kSize < n) sum[u] += f(j + u * G::kSize);
  }
  return group.join(Sum<A>{}, (sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/// The largest f(j), ignoring NaNs; -inf if there is nothing else.
template <class A, class G, class F> BRAID_DEVICE A group_max(const G& group, std::int64_t n, F f) {
  A best = lowest<A>();
  for (std::int64_t j = group.rank(); j < n; j += G::kSize)
    best = MaxOfNumbers<A>{}.join(best, f(j));
  return group.join(MaxOfNumbers<A>{}, best);
}

}  // namespace braid::cuda
