#pragma once
#include "cuda/device/element.cuh"

// Sums of rows beside a product: groups of 8 neighbours by a tree, the groups in order by a sum
// that keeps what each addition loses (Knuth's two-sum), so that the error stays below (log2 n + 2)
// u Σ|x| for any length, in one pass and in an order that no tile changes.
namespace braid::cuda {

inline constexpr int kRowGroup = 8;

/// load(from) + … + load(from + N - 1) by a tree of neighbours; few of them are held at once.
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
  /// Infinity and NaN lose nothing.
  [[nodiscard]] BRAID_DEVICE A value() const { return sum - sum == A(0) ? sum + lost : sum; }
};

}  // namespace braid::cuda
