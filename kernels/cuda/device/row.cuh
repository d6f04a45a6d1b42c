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

/// How many elements an address lies behind one that is a multiple of 16 bytes.
template <class T> BRAID_DEVICE int skew_of(const T* p) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) % 16 / sizeof(T));
}
/// 16 bytes at p, which need not be aligned, taken from the two aligned packs around them. Both
/// must be memory of the row.
template <class T> BRAID_DEVICE Pack<T, kWidest<T>> load_shifted(const T* p) {
  struct alignas(16) Words {
    std::uint32_t w[4];
  };
  const int skew = skew_of(p), behind = skew * static_cast<int>(sizeof(T));
  const auto low = simt::load_vector<Words>(p - skew),
             high = simt::load_vector<Words>(p - skew + kWidest<T>);
  std::uint32_t w[8];
#pragma unroll
  for (int k = 0; k < 4; ++k) w[k] = low.w[k], w[k + 4] = high.w[k];
#pragma unroll
  for (int k = 0; k < 6; ++k) w[k] = (behind & 8) != 0 ? w[k + 2] : w[k];
#pragma unroll
  for (int k = 0; k < 5; ++k) w[k] = (behind & 4) != 0 ? w[k + 1] : w[k];
  Words all;
#pragma unroll
  for (int k = 0; k < 4; ++k) all.w[k] = (behind & 2) != 0 ? w[k] >> 16 | w[k + 1] << 16 : w[k];
  Pack<T, kWidest<T>> pack;
  memcpy(&pack, &all, sizeof pack);
  return pack;
}
/// Loads pack j of a row that begins anywhere, in accesses of 16 bytes except near its ends.
template <class T>
BRAID_DEVICE Pack<T, kWidest<T>> load_anywhere(const T* row, std::int64_t j, std::int64_t n,
                                               bool packs, T rest) {
  constexpr int width = kWidest<T>;
  if (packs && j < n) return load_pack<width>(row + j);
  const int skew = skew_of(row);
  if ((j > 0 || skew == 0) && j - skew + 2 * width <= n) return load_shifted(row + j);
  Pack<T, width> pack;
#pragma unroll
  for (int k = 0; k < width; ++k) pack.v[k] = j + k < n ? row[j + k] : rest;
  return pack;
}

/// The skew that all rows have, or -1.
template <class T, class... More> BRAID_DEVICE int common_skew(const T* row, const More*... more) {
  const int skew = skew_of(row);
  return ((skew_of(more) == skew) && ...) ? skew : -1;
}
/// For functions of single elements: the aligned packs of rows with a common skew. A thread's first
/// one is at this element, which is before the row if the skew is above 0; `is_whole` says that all
/// elements of pack j are in the row.
template <int width> BRAID_DEVICE std::int64_t first_aligned(int rank, int skew) {
  return rank * width - (skew > 0 ? skew : 0);
}
template <int width> BRAID_DEVICE bool is_whole(std::int64_t j, int skew, std::int64_t n) {
  return skew >= 0 && j >= 0 && j + width <= n;
}
template <class E, int N>
BRAID_DEVICE void load_part(typename E::A (&to)[N], const typename E::T* row, std::int64_t j,
                            std::int64_t n, bool whole, typename E::A rest) {
  if (whole) return load_row<E>(to, row, j, n, true, rest);
#pragma unroll
  for (int v = 0; v < N; ++v) to[v] = j + v >= 0 && j + v < n ? E::load(row[j + v]) : rest;
}
template <class E, int N>
BRAID_DEVICE void store_part(typename E::T* row, std::int64_t j, std::int64_t n, bool whole,
                             const typename E::A (&from)[N]) {
  if (whole) return store_row<E>(row, j, n, true, from);
#pragma unroll
  for (int v = 0; v < N; ++v)
    if (j + v >= 0 && j + v < n) row[j + v] = E::store(from[v]);
}

/// Numbers computed from these 16-bit elements are computed again after this, and take no registers
/// until then.
template <class T, int N, int packs> BRAID_DEVICE void forget_computed(Pack<T, N> (&v)[packs]) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int c = 0; c < packs; ++c) {
      std::uint32_t w[4];
      memcpy(w, &v[c], sizeof w);
      asm volatile("" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]));
      memcpy(&v[c], w, sizeof w);
    }
  }
#else
  (void)v;  // only registers matter
#endif
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
  constexpr int width = kWidest<typename E::T>, together = (sizeof(A) == 8 ? 4 : 16) / width;
  const A none = lowest<A>();
  A max = none, sum = A(0);
  for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < n;
       j += together * G::kSize * width) {
    A x[together][width];
#pragma unroll
    for (int c = 0; c < together; ++c) {
      const auto pack = load_anywhere(row, j + c * (G::kSize * width), n, packs, E::store(none));
#pragma unroll
      for (int k = 0; k < width; ++k) x[c][k] = E::load(pack.v[k]);
    }
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
