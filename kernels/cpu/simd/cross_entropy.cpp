#include <braid/core/kernel_args/loss.hpp>

#include "cpu/errors.hpp"
#include "cpu/simd/softmax_rows.hpp"

// Fused cross entropy of logits with class labels. The logits are read once, and again for label
// smoothing; no probabilities are stored.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kLossBlock = 2048;

template <class Args> void check_labels(const char* op, const Args& args) {
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const std::int64_t label = args.labels[row * args.label_stride];
    if (args.ignores && label == args.ignore_index) continue;
    if (label < 0 || label >= args.n) fail_index(op, "labels", 0, args.n, label, row);
  }
}

/// Returns the weight of class c.
template <class E, class Args>
BRAID_INLINE Lane<typename E::V> weight_of(const Args& args, std::int64_t c) {
  if (args.weight == nullptr) return 1;
  return E::load_first(static_cast<const typename E::T*>(args.weight) + c, 1)[0];
}

/// A source (tree.hpp) of w[c] (lse - x[c]).
template <class E> struct SmoothSource {
  using V = typename E::V;
  using M = Vec<std::conditional_t<sizeof(Lane<V>) == 4, std::int32_t, std::int64_t>, E::kLanes>;
  const typename E::T* x;
  const typename E::T* weight;
  V lse;
  BRAID_INLINE void prepare(std::int64_t, std::int64_t) {}
  BRAID_INLINE V at(std::int64_t i) const {
    const V d = lse - E::load(x + i);
    return weight == nullptr ? d : E::load(weight + i) * d;
  }
  BRAID_INLINE V first(std::int64_t i, int k) const {
    const V d = lse - E::load_first(x + i, k);
    const V w = weight == nullptr ? splat<V>(Lane<V>{1}) : E::load_first(weight + i, k);
    return iota<M>() < splat<M>(static_cast<Lane<M>>(k)) ? w * d : V{};
  }
};

template <class E> void cross_entropy_of(const CrossEntropyArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const T* x = static_cast<const T*>(args.x);
  const T* weight = static_cast<const T*>(args.weight);
  A* lse = static_cast<A*>(args.lse);
  const std::int64_t n = args.n;
  const A hot = static_cast<A>(1.0 - args.label_smoothing),
          spread = static_cast<A>(args.label_smoothing / static_cast<double>(n));
  // Losses and weights of the rows, summed over the row index by the tree of tree.hpp, 2048 rows at
  // a time.
  Cascade<Sum, Row<V>> losses, weights;
  for (std::int64_t begin = 0; begin < args.rows; begin += kLossBlock) {
    const std::int64_t count = args.rows - begin < kLossBlock ? args.rows - begin : kLossBlock;
    alignas(64) A loss[kLossBlock], of_label[kLossBlock];
    const auto finish = [&](std::int64_t r, RowStats<A> stats) {
      const std::int64_t row = begin + r, label = args.labels[row * args.label_stride];
      const A log = log_sum<V>(stats);
      lse[row] = stats.max + log;
      if (args.ignores && label == args.ignore_index) {
        loss[r] = of_label[r] = 0;
        return;
      }
      of_label[r] = weight_of<E>(args, label);
      loss[r] = hot * of_label[r] *
                ((stats.max - static_cast<A>(E::load_first(x + row * n + label, 1)[0])) + log);
      if (args.label_smoothing == 0.0) return;
      SmoothSource<E> source{x + row * n, weight, splat<V>(lse[row])};
      loss[r] += spread * reduce_all<Sum, V>(source, n);
    };
    if (n <= kPiece) {
      for_rows(count, n, stream,
               [&](std::int64_t r) { finish(r, piece_stats<E>(x + (begin + r) * n, n)); });
    } else {
      for (std::int64_t r = 0; r < count; ++r)
        finish(r, shared_row_stats<E>(x + (begin + r) * n, n, stream));
    }
    if (args.row_loss != nullptr)
      for (std::int64_t r = 0; r < count; ++r)
        static_cast<T*>(args.row_loss)[begin + r] = E::from_double(static_cast<double>(loss[r]));
    DenseSource<Computed<E>> source{loss}, weight_source{of_label};
    losses.push(reduce_rows<Sum, V>(source, 0, count), 0);
    if (args.total != nullptr) weights.push(reduce_rows<Sum, V>(weight_source, 0, count), 0);
  }
  const double sum = static_cast<double>(join_lanes<Sum>(losses.finish()));
  const A total = args.total != nullptr ? join_lanes<Sum>(weights.finish()) : A{1};
  if (args.total != nullptr) *static_cast<A*>(args.total) = total;
  *static_cast<T*>(args.sum) =
      E::from_double(args.mean ? sum / static_cast<double>(total) : sum * args.scale);
}

template <class E>
void cross_entropy_backward_of(const CrossEntropyBackwardArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const T* x = static_cast<const T*>(args.x);
  const T* dy = static_cast<const T*>(args.dy);
  const T* weight = static_cast<const T*>(args.weight);
  const A* lse = static_cast<const A*>(args.lse);
  T* dx = static_cast<T*>(args.dx);
  const std::int64_t n = args.n;
  const double scale = args.total != nullptr
                           ? args.scale / static_cast<double>(*static_cast<const A*>(args.total))
                           : args.scale;
  const A hot = static_cast<A>(1.0 - args.label_smoothing),
          spread = static_cast<A>(args.label_smoothing / static_cast<double>(n));
  double weights = static_cast<double>(n);
  if (weight != nullptr && spread != A{0}) {
    weights = 0;
    for (std::int64_t c = 0; c < n; ++c) weights += static_cast<double>(weight_of<E>(args, c));
  }
  const A of_all = static_cast<A>(static_cast<double>(spread) * weights);
  const auto piece = [&](std::int64_t row, std::int64_t begin, std::int64_t count) {
    const T* from = x + row * n + begin;
    T* to = dx + row * n + begin;
    std::int64_t label = args.labels[row * args.label_stride];
    if (args.ignores && label == args.ignore_index) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = E::from_double(0);
      return;
    }
    const A log = lse[row], w = hot * weight_of<E>(args, label),
            factor = static_cast<A>(
                scale * static_cast<double>(E::load_first(dy + row * args.dy_stride, 1)[0]));
    const V shift = splat<V>(log), f = splat<V>(factor), s = splat<V>(w + of_all),
            t = splat<V>(spread);
    label -= begin;
    // The logit at the label is read before dx is written, because dx may be x.
    const bool here = label >= 0 && label < count;
    A at_label =
        here ? exp_of<V>(static_cast<A>(E::load_first(from + label, 1)[0]) - log) * (w + of_all)
             : A{};
    std::int64_t i = 0;
    if (spread == A{0}) {
      for (; i + E::kLanes <= count; i += E::kLanes)
        E::store(to + i, exp(E::load(from + i) - shift) * s * f);
      if (i < count) {
        const int k = static_cast<int>(count - i);
        E::store_first(to + i, exp(E::load_first(from + i, k) - shift) * s * f, k);
      }
    } else {
      const T* classes = weight == nullptr ? nullptr : weight + begin;
      if (here) at_label -= spread * weight_of<E>(args, label + begin);
      for (; i + E::kLanes <= count; i += E::kLanes) {
        const V even = classes == nullptr ? t : t * E::load(classes + i);
        E::store(to + i, (exp(E::load(from + i) - shift) * s - even) * f);
      }
      if (i < count) {
        const int k = static_cast<int>(count - i);
        const V even = classes == nullptr ? t : t * E::load_first(classes + i, k);
        E::store_first(to + i, (exp(E::load_first(from + i, k) - shift) * s - even) * f, k);
      }
    }
    if (here) to[label] = E::from_double(static_cast<double>((at_label - w) * factor));
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
  if (args.dtype < DType::float16)
    fail_dtype("cross_entropy", "a floating-point dtype", args.dtype);
  check_labels("cross_entropy", args);
  with_floating(args.dtype, [&]<class E>() {
    if (args.rows > 0) {
      cross_entropy_of<E>(args, stream);
    } else {
      *static_cast<typename E::T*>(args.sum) =
          E::from_double(args.mean ? __builtin_nan("") : 0.0 * args.scale);
      if (args.total != nullptr) *static_cast<Lane<typename E::V>*>(args.total) = 0;
    }
    return true;
  });
}

void cross_entropy_backward(const CrossEntropyBackwardArgs& args, Stream& stream) {
  if (args.dtype < DType::float16)
    fail_dtype("cross_entropy_backward", "a floating-point dtype", args.dtype);
  check_labels("cross_entropy_backward", args);
  if (args.rows <= 0 || args.n <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    cross_entropy_backward_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
