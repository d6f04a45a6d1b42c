#pragma once
#include "cuda/device/element.cuh"

// Row sums, computed with a product. Groups of 8 neighbours are summed as a tree, and the groups in
// order with a compensated sum (Knuth's two-sum). So the error stays below (log2 n + 2) u Σ|x| for
// any length, in one pass and in an order that does not depend on the tile.
namespace braid::cuda {

inline constexpr int kRowGroup = 8;

/// load(from) + … + load(from + N - 1) as a tree of neighbours, which holds few of them at a time.
template <int N, class A, class F> BRAID_DEVICE A tree_sum(const F& load, int from = 0) {
  if constexpr (N == 1) {
    return load(from);
  } else {
    const A low = tree_sum<N / 2, A>(load, from);
    return low + tree_sum<N / 2, A>(load, from + N / 2);
  }
}

template <class A> struct RowSum {
  A sum, lost;
  BRAID_DEVICE void add(A x) {
    const A next = sum + x, part = next - sum;
    lost += (sum - (next - part)) + (x - part);
    sum = next;
  }
  /// Infinity and NaN are returned without the compensation.
  [[nodiscard]] BRAID_DEVICE A value() const { return sum - sum == A(0) ? sum + lost : sum; }
};

}  // namespace braid::cuda
