#include <braid/core/kernel_args/norm.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/loaders.hpp"
#include "cpu/simd/norm.hpp"

// Normalisation of contiguous rows: layer norm, group norm, RMS norm. A row is read from memory
// once; later reads hit the cache.
namespace braid::cpu::BRAID_ISA {
namespace {

/// The weights of a row: one for each element, or one for each run of `inner` elements.
struct RowWeights {
  std::int64_t at, count;
};
template <class Args> BRAID_INLINE RowWeights weights_of(const Args& args, std::int64_t row) {
  const std::int64_t count = args.n / args.inner;
  return {row % args.groups * count, count};
}
template <class T> BRAID_INLINE const T* from(const void* p, std::int64_t i) {
  return p == nullptr ? nullptr : static_cast<const T*>(p) + i;
}

template <class E> void norm_rows_of(const NormRowsArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const std::int64_t n = args.n;
  const bool streamed =
      args.inner == 1 && args.x != args.y && worth_streaming(args.y, args.rows, n, sizeof(T));
  for_rows(args.rows, n, stream, [&](std::int64_t row) {
    const T* x = static_cast<const T*>(args.x) + row * n;
    T* y = static_cast<T*>(args.y) + row * n;
    A mean{};
    if (args.center) {
      DenseSource<E> elements{x};
      mean = reduce_all<Sum, V>(elements, n) / static_cast<A>(n);
      static_cast<A*>(args.mean)[row] = mean;
    }
    SquaredDeviations<E> squares{x, splat<V>(mean)};
    const A rstd = A{1} / root<V>(reduce_all<Sum, V>(squares, n) / static_cast<A>(n) +
                                  static_cast<A>(args.eps));
    static_cast<A*>(args.rstd)[row] = rstd;
    const RowWeights weights = weights_of(args, row);
    if (args.inner > 1) {
      for (std::int64_t c = 0; c < weights.count; ++c)
        normalise_run<E>(x + c * args.inner, y + c * args.inner, args.inner, mean, rstd,
                         number<E>(args.weight, weights.at + c, A{1}),
                         number<E>(args.bias, weights.at + c, A{}));
      return;
    }
    const V m = splat<V>(mean), r = splat<V>(rstd);
    const T* w = from<T>(args.weight, weights.at);
    const T* b = from<T>(args.bias, weights.at);
    if (w != nullptr && b != nullptr)
      write_row<E>(y, n, streamed, [&](std::int64_t i, int k) {
        return (load_lanes<E>(x + i, k) - m) * r * load_lanes<E>(w + i, k) +
               load_lanes<E>(b + i, k);
      });
    else
      write_row<E>(y, n, streamed, [&](std::int64_t i, int k) {
        V v = (load_lanes<E>(x + i, k) - m) * r;
        if (w != nullptr) v *= load_lanes<E>(w + i, k);
        if (b != nullptr) v += load_lanes<E>(b + i, k);
        return v;
      });
    if (streamed) stream_fence();
  });
}

/// A source of dy weight, or, if `moment`, of dy weight (x - mean).
template <class E, bool moment> struct Weighted {
  using V = typename E::V;
  const typename E::T* x;
  const typename E::T* dy;
  const typename E::T* w;
  V mean;
  BRAID_INLINE void prepare(std::int64_t, std::int64_t) {}
  BRAID_INLINE V of(std::int64_t i, int k) const {
    V g = load_lanes<E>(dy + i, k);
    if (w != nullptr) g *= load_lanes<E>(w + i, k);
    if constexpr (moment) {
      const V d = load_lanes<E>(x + i, k) - mean;
      g *= k == E::kLanes ? d : first_lanes(d, k);
    }
    return g;
  }
  BRAID_INLINE V at(std::int64_t i) const { return of(i, E::kLanes); }
  BRAID_INLINE V first(std::int64_t i, int k) const { return of(i, k); }
};

/// The means in a row's gradient r (g - mean(g) - h mean(g h)).
template <class A> struct RowMeans {
  A g, gh;
};

/// Computes the gradient of one row whose elements have a weight each. Adds dy h and dy to the sums
/// of its tile where these are not null.
template <class E>
BRAID_INLINE void backward_row(const NormRowsBackwardArgs& args, std::int64_t row,
                               std::int64_t weight_at, Lane<typename E::V>* dweight,
                               Lane<typename E::V>* dbias) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const std::int64_t n = args.n;
  const T* x = static_cast<const T*>(args.x) + row * n;
  const T* dy = static_cast<const T*>(args.dy) + row * n;
  const T* w = from<T>(args.weight, weight_at);
  const V m = splat<V>(args.center ? static_cast<const A*>(args.mean)[row] : A{}),
          r = splat<V>(static_cast<const A*>(args.rstd)[row]);
  const bool wants_dx = args.dx != nullptr;
  V g_mean{}, gh_mean{};
  if (wants_dx) {
    Weighted<E, true> gh{x, dy, w, m};
    gh_mean = splat<V>(reduce_all<Sum, V>(gh, n) / static_cast<A>(n)) * r;
    if (args.center) {
      Weighted<E, false> g{x, dy, w, m};
      g_mean = splat<V>(reduce_all<Sum, V>(g, n) / static_cast<A>(n));
    }
  }
  T* dx = wants_dx ? static_cast<T*>(args.dx) + row * n : nullptr;
  const auto step = [&](std::int64_t i, int k) {
    const V d = load_lanes<E>(dy + i, k), h = (load_lanes<E>(x + i, k) - m) * r;
    if (dweight != nullptr) {
      const V sum = load_lanes<Plain<A, DType::float32>>(dweight + i, k) + d * h;
      if (k == E::kLanes) store(dweight + i, sum);
      else store_first(dweight + i, sum, k);
    }
    if (dbias != nullptr) {
      const V sum = load_lanes<Plain<A, DType::float32>>(dbias + i, k) + d;
      if (k == E::kLanes) store(dbias + i, sum);
      else store_first(dbias + i, sum, k);
    }
    if (dx == nullptr) return;
    V g = d;
    if (w != nullptr) g *= load_lanes<E>(w + i, k);
    const V value = r * (g - g_mean - h * gh_mean);
    if (k == E::kLanes) E::store(dx + i, value);
    else E::store_first(dx + i, value, k);
  };
  std::int64_t i = 0;
  for (; i + E::kLanes <= n; i += E::kLanes) step(i, E::kLanes);
  if (i < n) step(i, static_cast<int>(n - i));
}

/// The same where runs of `inner` elements share a weight.
template <class E>
BRAID_INLINE void backward_runs(const NormRowsBackwardArgs& args, std::int64_t row,
                                RowWeights weights, Lane<typename E::V>* dweight,
                                Lane<typename E::V>* dbias) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const T* x = static_cast<const T*>(args.x) + row * args.n;
  const T* dy = static_cast<const T*>(args.dy) + row * args.n;
  const A mean = args.center ? static_cast<const A*>(args.mean)[row] : A{},
          rstd = static_cast<const A*>(args.rstd)[row];
  RowMeans<A> means{};
  for (std::int64_t c = 0; c < weights.count; ++c) {
    DenseSource<E> plain{dy + c * args.inner};
    Moments<E> moments{x + c * args.inner, dy + c * args.inner, splat<V>(mean)};
    const A sum = reduce_all<Sum, V>(plain, args.inner),
            moment = reduce_all<Sum, V>(moments, args.inner) * rstd;
    if (dweight != nullptr) dweight[c] += moment;
    if (dbias != nullptr) dbias[c] += sum;
    const A weight = number<E>(args.weight, weights.at + c, A{1});
    if (args.center) means.g += weight * sum;
    means.gh += weight * moment;
  }
  if (args.dx == nullptr) return;
  const V r = splat<V>(rstd), m = splat<V>(mean),
          g_mean = splat<V>(means.g / static_cast<A>(args.n)),
          gh_mean = splat<V>(means.gh / static_cast<A>(args.n));
  for (std::int64_t c = 0; c < weights.count; ++c) {
    const V w = splat<V>(number<E>(args.weight, weights.at + c, A{1}));
    const std::int64_t at = c * args.inner;
    write_row<E>(static_cast<T*>(args.dx) + row * args.n + at, args.inner, false,
                 [&](std::int64_t i, int k) {
                   return r * (load_lanes<E>(dy + at + i, k) * w - g_mean -
                               (load_lanes<E>(x + at + i, k) - m) * r * gh_mean);
                 });
  }
}

/// Sums rows in tiles: the rows of a tile in order, the tiles as a tree.
template <class E> void norm_rows_backward_of(const NormRowsBackwardArgs& args, Stream& stream) {
  using A = Lane<typename E::V>;
  const std::int64_t unit = rows_of_tile(args.rows, args.groups),
                     tiles = (args.rows + unit - 1) / unit,
                     columns = args.groups * (args.n / args.inner);
  const std::int64_t apart =
      args.dweight != nullptr && args.dbias != nullptr ? 2 * columns : columns;
  const bool sums = args.dweight != nullptr || args.dbias != nullptr;
  A* const parts =
      sums ? static_cast<A*>(scratch(static_cast<std::size_t>(tiles * apart) * sizeof(A)))
           : nullptr;
  A* const bias_parts = args.dweight != nullptr ? parts + columns : parts;
  const auto tile = [&](std::int64_t t) {
    A* const dweight = args.dweight != nullptr ? parts + t * apart : nullptr;
    A* const dbias = args.dbias != nullptr ? bias_parts + t * apart : nullptr;
    if (sums) __builtin_memset(parts + t * apart, 0, static_cast<std::size_t>(apart) * sizeof(A));
    const std::int64_t end = (t + 1) * unit < args.rows ? (t + 1) * unit : args.rows;
    for (std::int64_t row = t * unit; row < end; ++row) {
      const RowWeights weights = weights_of(args, row);
      A* const w = dweight != nullptr ? dweight + weights.at : nullptr;
      A* const b = dbias != nullptr ? dbias + weights.at : nullptr;
      if (args.inner == 1) backward_row<E>(args, row, weights.at, w, b);
      else backward_runs<E>(args, row, weights, w, b);
    }
  };
  if (tiles <= 1) tile(0);
  else parallel_for(stream, tiles, tile);
  if (args.dweight != nullptr) join_tiles_to<E>(args.dweight, parts, apart, tiles, columns, stream);
  if (args.dbias != nullptr)
    join_tiles_to<E>(args.dbias, bias_parts, apart, tiles, columns, stream);
}

}  // namespace

void norm_rows(const NormRowsArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("norm_rows", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    norm_rows_of<E>(args, stream);
    return true;
  });
}

void norm_rows_backward(const NormRowsBackwardArgs& args, Stream& stream) {
  if (args.dtype < DType::float16)
    fail_dtype("norm_rows_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    norm_rows_backward_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
