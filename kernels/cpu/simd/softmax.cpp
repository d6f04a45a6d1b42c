#include <braid/core/kernel_args/softmax.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/row_writes.hpp"
#include "cpu/simd/softmax_rows.hpp"

// Softmax and log-softmax of contiguous rows, and their gradients.
// Traffic  rows of up to 8 Ki elements are read and written once, with the exponentials in a
//          buffer; longer ones are read twice, in pieces that threads share. Outputs larger than
//          the last-level cache are written past it.
namespace braid::cpu::BRAID_ISA {
namespace {

template <class E> void softmax_of(const SoftmaxArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);
  const std::int64_t n = args.n;
  const bool streamed = args.x != args.y && worth_streaming(args.y, args.rows, n, sizeof(T));

  if (n <= kPiece) {
    for_rows(args.rows, n, stream, [&](std::int64_t row) {
      const T* from = x + row * n;
      if (args.log) {
        const RowStats<A> stats = piece_stats<E>(from, n);
        const V max = splat<V>(stats.max), shift = splat<V>(log_sum<V>(stats));
        write_row<E>(y + row * n, n, streamed, [&](std::int64_t i, int k) {
          return load_lanes<E>(from + i, k) - max - shift;
        });
      } else {
        alignas(64) A exponentials[kPiece];
        ExpSource<E, true> source{from, largest<E>(from, n), exponentials};
        const V factor = splat<V>(A{1} / reduce_all<Sum, V>(source, n));
        write_row<E>(y + row * n, n, streamed, [&](std::int64_t i, int k) {
          return load_lanes<Computed<E>>(exponentials + i, k) * factor;
        });
      }
      if (streamed) stream_fence();
    });
    return;
  }
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const T* from = x + row * n;
    const RowStats<A> stats = shared_row_stats<E>(from, n, stream);
    const V max = splat<V>(stats.max), shift = splat<V>(log_sum<V>(stats)),
            factor = splat<V>(A{1} / stats.sum);
    const auto tile = [&](std::int64_t t) {
      const std::int64_t begin = t * kPiece, count = n - begin < kPiece ? n - begin : kPiece;
      const T* p = from + begin;
      if (args.log)
        write_row<E>(y + row * n + begin, count, streamed,
                     [&](std::int64_t i, int k) { return load_lanes<E>(p + i, k) - max - shift; });
      else
        write_row<E>(y + row * n + begin, count, streamed, [&](std::int64_t i, int k) {
          return exp_nonpositive(load_lanes<E>(p + i, k) - max) * factor;
        });
      if (streamed) stream_fence();
    };
    parallel_for(stream, (n + kPiece - 1) / kPiece, tile);
  }
}

/// A source of y * dy.
template <class E> struct ProductSource {
  using V = typename E::V;
  const typename E::T* a;
  const typename E::T* b;
  BRAID_INLINE void prepare(std::int64_t, std::int64_t) {}
  BRAID_INLINE V at(std::int64_t i) const { return E::load(a + i) * E::load(b + i); }
  BRAID_INLINE V first(std::int64_t i, int k) const {
    return E::load_first(a + i, k) * E::load_first(b + i, k);
  }
};

template <class E> void softmax_backward_of(const SoftmaxBackwardArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const T* y = static_cast<const T*>(args.y);
  const T* dy = static_cast<const T*>(args.dy);
  T* dx = static_cast<T*>(args.dx);
  const std::int64_t n = args.n;
  const bool streamed =
      args.dx != args.y && args.dx != args.dy && worth_streaming(args.dx, args.rows, n, sizeof(T));
  const auto write = [&](std::int64_t offset, std::int64_t count, A total) {
    const T* a = y + offset;
    const T* b = dy + offset;
    const V sum = splat<V>(total);
    if (args.log)
      write_row<E>(dx + offset, count, streamed, [&](std::int64_t i, int k) {
        return load_lanes<E>(b + i, k) - exp(load_lanes<E>(a + i, k)) * sum;
      });
    else
      write_row<E>(dx + offset, count, streamed, [&](std::int64_t i, int k) {
        return load_lanes<E>(a + i, k) * (load_lanes<E>(b + i, k) - sum);
      });
    if (streamed) stream_fence();
  };
  if (n <= kPiece) {
    for_rows(args.rows, n, stream, [&](std::int64_t row) {
      A total;
      if (args.log) {
        DenseSource<E> source{dy + row * n};
        total = reduce_all<Sum, V>(source, n);
      } else {
        ProductSource<E> source{y + row * n, dy + row * n};
        total = reduce_all<Sum, V>(source, n);
      }
      write(row * n, n, total);
    });
    return;
  }
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const A total =
        args.log ? reduce_shared<Sum, V>(n, stream, [&] { return DenseSource<E>{dy + row * n}; })
                 : reduce_shared<Sum, V>(
                       n, stream, [&] { return ProductSource<E>{y + row * n, dy + row * n}; });
    const auto tile = [&](std::int64_t t) {
      write(row * n + t * kPiece, n - t * kPiece < kPiece ? n - t * kPiece : kPiece, total);
    };
    parallel_for(stream, (n + kPiece - 1) / kPiece, tile);
  }
}

}  // namespace

void softmax(const SoftmaxArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("softmax", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    softmax_of<E>(args, stream);
    return true;
  });
}

void softmax_backward(const SoftmaxBackwardArgs& args, Stream& stream) {
  if (args.dtype < DType::float16)
    fail_dtype("softmax_backward", "a floating-point dtype", args.dtype);
  if (args.rows <= 0 || args.n <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    softmax_backward_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
