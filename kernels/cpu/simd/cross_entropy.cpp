#include "cpu/errors.hpp"
#include "cpu/simd/softmax_rows.hpp"

// Cross entropy of dense logits with class labels, fused: the logits are read once, no probabilities are stored.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kLossBlock = 2048;

void check_labels(const char* op, const std::int64_t* labels, std::int64_t stride, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = labels[row * stride];
    if (label < 0 || label >= n) fail_index(op, "labels", 0, n, label, row);
  }
}

template <class E>
void cross_entropy_of(const CrossEntropyArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const T* x = static_cast<const T*>(args.x);
  A* lse = static_cast<A*>(args.lse);
  const std::int64_t n = args.n;
  // Losses of the rows, summed by the tree of tree.hpp over the row index, 2048 rows at a time.
  Cascade<Sum, Row<V>> cascade;
  for (std::int64_t begin = 0; begin < args.rows; begin += kLossBlock) {
    const std::int64_t count = args.rows - begin < kLossBlock ? args.rows - begin : kLossBlock;
    alignas(64) A loss[kLossBlock];
    const auto finish = [&](std::int64_t r, RowStats<A> stats) {
      const std::int64_t row = begin + r;
      const A log = log_sum<V>(stats);
      lse[row] = stats.max + log;
      loss[r] = (stats.max - static_cast<A>(E::load_first(x + row * n + args.labels[row * args.label_stride], 1)[0])) + log;
    };
    if (n <= kPiece) {
      for_rows(count, n, stream, [&](std::int64_t r) { finish(r, piece_stats<E>(x + (begin + r) * n, n)); });
    } else {
      for (std::int64_t r = 0; r < count; ++r) finish(r, shared_row_stats<E>(x + (begin + r) * n, n, stream));
    }
    DenseSource<Computed<E>> source{loss};
    cascade.push(reduce_rows<Sum, V>(source, 0, count), 0);
  }
  *static_cast<T*>(args.sum) = E::from_double(static_cast<double>(join_lanes<Sum>(cascade.finish())) * args.scale);
}

template <class E>
void cross_entropy_backward_of(const CrossEntropyBackwardArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const T* x = static_cast<const T*>(args.x);
  const A* lse = static_cast<const A*>(args.lse);
  T* dx = static_cast<T*>(args.dx);
  const std::int64_t n = args.n;
  const A factor = static_cast<A>(args.scale * static_cast<double>(E::load_first(static_cast<const T*>(args.dy), 1)[0]));
  const V scale = splat<V>(factor);
  const auto piece = [&](std::int64_t row, std::int64_t begin, std::int64_t count) {
    const A log = lse[row];
    const V shift = splat<V>(log);
    const T* from = x + row * n + begin;
    T* to = dx + row * n + begin;
    const std::int64_t label = args.labels[row * args.label_stride] - begin;
    // The label's own logit is read before dx, which may be x, is written.
    const bool here = label >= 0 && label < count;
    const A at_label = here ? exp_of<V>(static_cast<A>(E::load_first(from + label, 1)[0]) - log) : A{};
    std::int64_t i = 0;
    for (; i + E::kLanes <= count; i += E::kLanes) E::store(to + i, exp(E::load(from + i) - shift) * scale);
    if (i < count) {
      const int k = static_cast<int>(count - i);
      E::store_first(to + i, exp(E::load_first(from + i, k) - shift) * scale, k);
    }
    if (here) to[label] = E::from_double(static_cast<double>((at_label - A{1}) * factor));
  };
  if (n <= kPiece) {
    for_rows(args.rows, n, stream, [&](std::int64_t row) { piece(row, 0, n); });
    return;
  }
  const std::int64_t pieces = (n + kPiece - 1) / kPiece;
  const auto tile = [&](std::int64_t t) {
    const std::int64_t begin = t % pieces * kPiece;
    piece(t / pieces, begin, n - begin < kPiece ? n - begin : kPiece);
  };
  parallel_for(stream, args.rows * pieces, tile);
}

}  // namespace

void cross_entropy(const CrossEntropyArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("cross_entropy", "a floating-point dtype", args.dtype);
  check_labels("cross_entropy", args.labels, args.label_stride, args.rows, args.n);
  with_floating(args.dtype, [&]<class E>() {
    if (args.rows <= 0) *static_cast<typename E::T*>(args.sum) = E::from_double(0.0 * args.scale);
    else cross_entropy_of<E>(args, stream);
    return true;
  });
}

void cross_entropy_backward(const CrossEntropyBackwardArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("cross_entropy_backward", "a floating-point dtype", args.dtype);
  check_labels("cross_entropy_backward", args.labels, args.label_stride, args.rows, args.n);
  if (args.rows <= 0 || args.n <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    cross_entropy_backward_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
