#pragma once
#include "cuda/device/group.cuh"
#include "cuda/device/row_sum.cuh"

// Contiguous rows, read by a warp or a block in accesses of 16 bytes. Thread r of a group of S has
// packs r, r + S, … of a row, whatever its alignment. So the order of a sum depends only on the
// row's length and the dtype.
namespace braid::cuda {

// elements of a row that a thread holds
inline constexpr int kHeld = 32;
inline constexpr std::int64_t kWarpRow = 32 * kHeld;  // up to here a warp holds a row,
// up to here a block; longer rows are read again
inline constexpr std::int64_t kBlockRow = kThreads * kHeld;

/// True if packs of every row of n elements may be read and written at these pointers.
template <class... T> bool rows_in_packs(std::int64_t n, const T*... rows) {
  return ((is_aligned<kWidest<T>>(rows) && n % kWidest<T> == 0) && ...);
}

/// Loads elements [j, j + N) of a row of n as computed numbers; elements outside are `rest`.
template <class E, int N>
BRAID_DEVICE void load_row(typename E::A (&to)[N], const typename E::T* row, std::int64_t j,
                           std::int64_t n, bool packs, typename E::A rest) {
  if (packs && j < n) {
    const auto pack = load_pack<N>(row + j);
#pragma unroll
    for (int v = 0; v < N; ++v) to[v] = E::load(pack.v[v]);
  } else {
#pragma unroll
    for (int v = 0; v < N; ++v) to[v] = j + v < n ? E::load(row[j + v]) : rest;
  }
}
template <class E, int N>
BRAID_DEVICE void store_row(typename E::T* row, std::int64_t j, std::int64_t n, bool packs,
                            const typename E::A (&from)[N]) {
  if (packs && j < n) {
    Pack<typename E::T, N> pack;
#pragma unroll
    for (int v = 0; v < N; ++v) pack.v[v] = E::store(from[v]);
    store_pack(row + j, pack);
  } else {
#pragma unroll
    for (int v = 0; v < N; ++v)
      if (j + v < n) row[j + v] = E::store(from[v]);
  }
}

/// A row in registers, with up to kHeld elements per thread.
template <class E, class G> struct HeldRow {
  using A = typename E::A;
  static constexpr int kWidth = kWidest<typename E::T>, kPacks = kHeld / kWidth;
  A v[kPacks][kWidth];

  static BRAID_DEVICE int place(const G& group, int pack) {
    return (group.rank() + pack * G::kSize) * kWidth;
  }
  // the same for all threads
  static BRAID_DEVICE bool reaches(int pack, int n) { return pack * G::kSize * kWidth < n; }

  BRAID_DEVICE void load(const G& group, const typename E::T* row, int n, bool packs, A rest) {
#pragma unroll
    for (int c = 0; c < kPacks; ++c) {
      if (reaches(c, n)) {
        load_row<E>(v[c], row, place(group, c), n, packs, rest);
      } else {
#pragma unroll
        for (int k = 0; k < kWidth; ++k) v[c][k] = rest;
      }
    }
  }
  BRAID_DEVICE void store(const G& group, typename E::T* row, int n, bool packs) const {
#pragma unroll
    for (int c = 0; c < kPacks; ++c)
      if (reaches(c, n)) store_row<E>(row, place(group, c), n, packs, v[c]);
  }
  /// v = f(v) for the packs that the row reaches.
  template <class F> BRAID_DEVICE void map(int n, F f) {
#pragma unroll
    for (int c = 0; c < kPacks; ++c) {
      if (!reaches(c, n)) continue;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) v[c][k] = f(v[c][k], c, k);
    }
  }
  /// The largest element, ignoring NaNs.
  BRAID_DEVICE A max(const G& group, int n) const {
    A best = lowest<A>();
#pragma unroll
    for (int c = 0; c < kPacks; ++c) {
      if (!reaches(c, n)) continue;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) best = MaxOfNumbers<A>{}.join(best, v[c][k]);
    }
    return group.join(MaxOfNumbers<A>{}, best);
  }
  /// Σ f(v, pack, index in it): a tree over each pack, the packs in order, then the group's tree.
  template <class F> BRAID_DEVICE A sum(const G& group, int n, F f) const {
    A total = A(0);
#pragma unroll
    for (int c = 0; c < kPacks; ++c)
      if (reaches(c, n)) total += tree_sum<kWidth, A>([&](int k) { return f(v[c][k], c, k); });
    return group.join(Sum<A>{}, total);
  }
};

/// For a row that is read once and not held: its largest number and Σ exp(x - largest), with a
/// running maximum in each thread (Milakov and Gimelshein 2018). The sum of a row of only -inf is
/// NaN.
template <class A> struct MaxAndSum {
  A max, sum;
};
template <class A> BRAID_DEVICE A exp_below(A x, A max) {
  return x == max ? A(1) : exp_of(x - max);  // the difference of equal infinities is NaN
}
template <class E, class G>
BRAID_DEVICE MaxAndSum<typename E::A> max_and_sum(const G& group, const typename E::T* row,
                                                  std::int64_t n, bool packs) {
  using A = typename E::A;
  // as many as fit in registers together with exp
  constexpr int width = kWidest<typename E::T>, together = (sizeof(A) == 8 ? 8 : 16) / width;
  const A none = lowest<A>();
  A max = none, sum = A(0);
  for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < n;
       j += together * G::kSize * width) {
    A x[together][width];
#pragma unroll
    for (int c = 0; c < together; ++c)
      load_row<E>(x[c], row, j + c * (G::kSize * width), n, packs, none);
    A above = max;
#pragma unroll
    for (int c = 0; c < together; ++c)
#pragma unroll
      for (int k = 0; k < width; ++k) above = MaxOfNumbers<A>{}.join(above, x[c][k]);
    // While all are -inf, 0 replaces the largest: each adds 0, and a NaN stays a NaN.
    const A shift = above == none ? A(0) : above;
    A part = A(0);
#pragma unroll
    for (int c = 0; c < together; ++c)
      part += tree_sum<width, A>([&](int k) { return exp_of(x[c][k] - shift); });
    sum = sum * exp_below(max, above) + part;
    max = above;
  }
  const A largest = group.join(MaxOfNumbers<A>{}, max);
  const A all = group.join(Sum<A>{}, sum * exp_below(max, largest));
  return {largest, largest == none ? highest<A>() - highest<A>() : all};
}

}  // namespace braid::cuda
