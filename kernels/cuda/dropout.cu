#include <braid/core/internal/kernel_args/dropout.hpp>

#include "cuda/device/dropout.cuh"
#include "cuda/device/loop.cuh"
#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Dropout in one pass: a Philox block decides about four elements. The mask is never stored.
namespace braid::cuda {

/// Elements per thread: whole Philox blocks, and at least 16 bytes.
template <class T> inline constexpr int kDropWidth = kWidest<T> < 4 ? 4 : kWidest<T>;

template <class E> struct Dropped {
  using T = typename E::T;
  const T* x;
  T* y;
  DropKey key;
  typename E::A scale;
  std::int64_t outer, rows, inner, first;  // first: index of the first element in the whole batch
  bool packs;
  const RandomShift* shift;
  /// The key with what a replay changes.
  BRAID_DEVICE DropKey present_key() const {
    const RandomOf random(key.seed, key.stream, shift);
    return {random.seed, random.stream, key.threshold};
  }
};

/// For elements that are contiguous in the whole batch too. A thread has as many Philox blocks as
/// fill 16 bytes; the first block may begin before the elements.
template <class E> __global__ void __launch_bounds__(kThreads) dropout_run(Dropped<E> p) {
  using A = typename E::A;
  constexpr int width = kDropWidth<typename E::T>;
  const DropKey key = p.present_key();
  const std::int64_t n = p.rows * p.inner, skip = p.first % 4;
  for (std::int64_t t = grid_thread(); width * t < n + skip; t += grid_threads()) {
    const std::int64_t at = width * t - skip;
    const bool pack = p.packs && at + width <= n;
    A v[width];
    if (pack) {
      load_row<E>(v, p.x, at, n, true, A(0));
    } else {
#pragma unroll
      for (int k = 0; k < width; ++k)
        v[k] = at + k >= 0 && at + k < n ? E::load(p.x[at + k]) : A(0);
    }
#pragma unroll
    for (int b = 0; b < width; b += 4) {
      const PhiloxBlock words = philox(
          key.seed, key.stream, static_cast<std::uint64_t>(p.first / 4 + t * (width / 4) + b / 4));
#pragma unroll
      for (int k = 0; k < 4; ++k) v[b + k] *= key.keeps(words.w[k]) ? p.scale : A(0);
    }
    if (pack) {
      store_row<E>(p.y, at, n, true, v);
    } else {
#pragma unroll
      for (int k = 0; k < width; ++k)
        if (at + k >= 0 && at + k < n) p.y[at + k] = E::store(v[k]);
    }
  }
}

/// For [outer, rows, inner] with the rows in the middle: one element at a time.
template <class E> __global__ void __launch_bounds__(kThreads) dropout_rows(Dropped<E> p) {
  using A = typename E::A;
  const DropKey key = p.present_key();
  const std::int64_t row = p.outer * p.inner;
  for (std::int64_t i = grid_thread(); i < p.rows * row; i += grid_threads()) {
    const std::int64_t o = i / (p.rows * p.inner), r = i / p.inner % p.rows,
                       e = p.first + r * row + o * p.inner + i % p.inner;
    p.y[i] = E::store(E::load(p.x[i]) *
                      (key.keeps_element(static_cast<std::uint64_t>(e)) ? p.scale : A(0)));
  }
}

void dropout(const DropoutArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("dropout", "a floating-point dtype", args.dtype);
  if (args.outer <= 0 || args.rows <= 0 || args.inner <= 0) return;
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    constexpr int width = kDropWidth<T>;
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    const std::int64_t n = args.outer * args.rows * args.inner,
                       first = args.first_row * args.outer * args.inner;
    const bool packs = first % 4 == 0 && is_aligned<width>(x) && is_aligned<width>(y);
    const Dropped<E> p{x,
                       y,
                       {args.seed, args.stream, args.threshold},
                       static_cast<typename E::A>(args.scale),
                       args.outer,
                       args.rows,
                       args.inner,
                       first,
                       packs,
                       args.shift};
    if (args.outer == 1)
      run("dropout", dropout_run<E>, blocks_for(n + 3, width * kThreads), kThreads, stream, p);
    else run("dropout", dropout_rows<E>, blocks_for(n, kThreads), kThreads, stream, p);
  });
}

}  // namespace braid::cuda
