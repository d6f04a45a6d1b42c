#include "cpu/errors.hpp"
#include "cpu/simd/image.hpp"

// Means of windows, resizing, and the gradients of both: sums weighted by weights along the height
// times weights along the width. The input range and weights of each output index are computed once
// per call for each of the two dims.
namespace braid::cpu::BRAID_ISA {
namespace {

/// The inputs of an output index: elements [first, first + count), with weights from `weight` on.
struct Seen {
  std::int64_t first, count, weight;
};

BRAID_INLINE Span span_of(const Axis& a, bool transposed, std::int64_t r) {
  return transposed ? that_see(a, r) : seen_by(a, r);
}
BRAID_INLINE double weight_at(const Axis& a, bool transposed, std::int64_t r, std::int64_t e) {
  if (!transposed) return weight_of(a, r, seen_by(a, r), e);
  return weight_of(a, e, seen_by(a, e), r);
}

std::int64_t count_weights(const Axis& a, bool transposed, std::int64_t places) {
  std::int64_t all = 0;
  for (std::int64_t r = 0; r < places; ++r) {
    const Span span = span_of(a, transposed, r);
    if (span.last > span.first) all += span.last - span.first;
  }
  return all;
}

template <class A>
void find_weights(const Axis& a, bool transposed, std::int64_t places, Seen* seen, A* weights) {
  std::int64_t next = 0;
  for (std::int64_t r = 0; r < places; ++r) {
    const Span span = span_of(a, transposed, r);
    seen[r] = {span.first, span.last > span.first ? span.last - span.first : 0, next};
    for (std::int64_t e = span.first; e < span.last; ++e)
      weights[next++] = static_cast<A>(weight_at(a, transposed, r, e));
  }
}

template <class E, class P> void resample_of(const ResampleArgs& args, Stream& stream) {
  using T = typename E::T;
  using A = Lane<typename E::V>;
  const Axis &down = args.axis[0], &across = args.axis[1];
  const bool t = args.transposed;
  const std::int64_t height = t ? down.in : down.out, width = t ? across.in : across.out;
  const std::int64_t of_rows = count_weights(down, t, height),
                     of_columns = count_weights(across, t, width);
  auto* const rows =
      static_cast<Seen*>(scratch(static_cast<std::size_t>(height + width) * sizeof(Seen) +
                                 static_cast<std::size_t>(of_rows + of_columns) * sizeof(A)));
  Seen* const columns = rows + height;
  A* const row_weights = reinterpret_cast<A*>(columns + width);
  A* const column_weights = row_weights + of_rows;
  find_weights(down, t, height, rows, row_weights);
  find_weights(across, t, width, columns, column_weights);
  for_image_rows(args.n, height, width * args.c, stream, [&](std::int64_t n, std::int64_t h) {
    const Seen row = rows[h];
    for (std::int64_t w = 0; w < width; ++w) {
      const Seen column = columns[w];
      const std::int64_t from = place_of(args.from, n, row.first, column.first),
                         to = place_of(args.to, n, h, w);
      for_channels<P>(args.c, [&](std::int64_t c, int k) {
        const T* const x = static_cast<const T*>(args.x) + from + c * args.from.of[1];
        auto sum = P::number(0);
        for (std::int64_t i = 0; i < row.count; ++i)
          for (std::int64_t j = 0; j < column.count; ++j)
            sum += P::number(row_weights[row.weight + i] * column_weights[column.weight + j]) *
                   P::load(x + i * args.from.of[2] + j * args.from.of[3], k);
        P::store(static_cast<T*>(args.y) + to + c * args.to.of[1], sum, k);
      });
    }
  });
}

}  // namespace

void resample(const ResampleArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("resample", "a floating-point dtype", args.dtype);
  if (args.n <= 0 || args.c <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    with_channels<E>(args.from, args.to, [&]<class P>() { resample_of<E, P>(args, stream); });
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
