#include <braid/core/kernel_args/reduce.hpp>

#include "cpu/simd/reduce_columns.hpp"

// The index of the first largest (smallest) element: first its value, by the tree of tree.hpp, then
// the first index that holds it. A NaN counts as the largest and as the smallest.
namespace braid::cpu::BRAID_ISA {
namespace {

/// Returns the index of the first element in [begin, begin + n) that equals `value`, or of the
/// first NaN if `value` is NaN. Requires n > 0 and a `begin` that is a multiple of 16.
template <class V, class S>
std::int64_t find_first(S& source, std::int64_t begin, std::int64_t n, Lane<V> value) {
  constexpr int lanes = kLanesOf<V>;
  const V wanted = splat<V>(value);
  const bool nan = value != value;
  const std::int64_t end = begin + n;
  for (std::int64_t block = begin; block < end; block += kBlockElements) {
    const std::int64_t stop = end - block < kBlockElements ? end : block + kBlockElements;
    source.prepare(block, stop - block);
    for (std::int64_t i = block; i < stop; i += lanes) {
      const int k = stop - i < lanes ? static_cast<int>(stop - i) : lanes;
      const V v = k == lanes ? source.at(i) : source.first(i, k);
      const auto hit = nan ? v != v : v == wanted;
      if (!any(hit)) continue;
      for (int l = 0; l < k; ++l)
        if (hit[l]) return i + l;
    }
  }
  return begin;  // not reached: the value is one of the elements
}

template <class A> struct Best {
  A value;
  std::int64_t index;
};

/// True if b, which comes after a, replaces it. C is Max or Min.
template <class C, class A> BRAID_INLINE bool beats(A b, A a) {
  if (a != a) return false;
  if (b != b) return true;
  if constexpr (std::is_same_v<C, Max>) return b > a;
  else return b < a;
}

template <class C, class V, class S>
__attribute__((noinline)) Best<Lane<V>> best_of(S& source, std::int64_t begin, std::int64_t n) {
  const Lane<V> value = join_lanes<C>(reduce_rows<C, V>(source, begin, n));
  return {value, find_first<V>(source, begin, n, value)};
}

template <class C, class V, class M>
std::int64_t shared_best_of(std::int64_t n, Stream& stream, M source_of) {
  const std::int64_t shared = shared_tile(n), tiles = (n + shared - 1) / shared;
  Best<Lane<V>> part[kMaxSharedTiles];
  const auto tile = [&](std::int64_t t) {
    auto source = source_of();
    part[t] = best_of<C, V>(source, t * shared, n - t * shared < shared ? n - t * shared : shared);
  };
  parallel_for(stream, tiles, tile);
  Best<Lane<V>> best = part[0];
  for (std::int64_t t = 1; t < tiles; ++t)
    if (beats<C>(part[t].value, best.value)) best = part[t];
  return best.index;
}

template <class C> void index_by_rows(const ReduceArgs& args, Stream& stream) {
  const std::int64_t n = args.over.n;
  const int bytes = element_bytes(args.dtype);
  const char* x = static_cast<const char*>(args.x);
  auto* out = static_cast<std::int64_t*>(args.out);
  with_source<std::int64_t>(args, [&]<class V>(auto source_of) {
    if (n <= kSharedTile) {
      for_rows(args.keep.n, n, stream, [&](std::int64_t e) {
        auto source = source_of(x + offset_at(args.keep, 1, e) * bytes);
        out[offset_at(args.keep, 0, e)] = best_of<C, V>(source, 0, n).index;
      });
    } else {
      for (std::int64_t e = 0; e < args.keep.n; ++e) {
        const char* from = x + offset_at(args.keep, 1, e) * bytes;
        out[offset_at(args.keep, 0, e)] =
            shared_best_of<C, V>(n, stream, [&] { return source_of(from); });
      }
    }
  });
}

/// Columns of float or double, in panels; row by row, so that the first index wins.
template <class C, class E> void index_by_columns(const ReduceArgs& args, Stream& stream) {
  using A = typename E::T;
  const Columns columns(args.keep);
  const std::int64_t tasks = columns.outer.n * columns.panels;
  const auto tile = [&](std::int64_t t) {
    const Position at = position_of(columns.outer, t / columns.panels);
    const std::int64_t first = t % columns.panels * kPanel;
    const std::int64_t width = columns.columns - first < kPanel ? columns.columns - first : kPanel;
    const Panel<E> panel{static_cast<const A*>(args.x) + offset_of(columns.outer, 1, at) + first,
                         args.over, width};
    A best[kPanel];
    std::int64_t index[kPanel];
    for (std::int64_t c = 0; c < width; ++c) best[c] = panel.row(0)[c], index[c] = 0;
    for (std::int64_t j = 1; j < args.over.n; ++j) {
      const A* row = panel.row(j);
      for (std::int64_t c = 0; c < width; ++c) {
        const bool better = beats<C>(row[c], best[c]);
        best[c] = better ? row[c] : best[c];
        index[c] = better ? j : index[c];
      }
    }
    std::int64_t* out = static_cast<std::int64_t*>(args.out) + offset_of(columns.outer, 0, at) +
                        first * columns.out_stride;
    for (std::int64_t c = 0; c < width; ++c) out[c * columns.out_stride] = index[c];
  };
  if (args.keep.n * args.over.n <= kSharedTile) {
    for (std::int64_t t = 0; t < tasks; ++t) tile(t);
  } else {
    parallel_for(stream, tasks, tile);
  }
}

template <class C> void index_of(const ReduceArgs& args, Stream& stream) {
  if (by_columns(args) && args.dtype == DType::float32)
    return index_by_columns<C, F32>(args, stream);
  if (by_columns(args) && args.dtype == DType::float64)
    return index_by_columns<C, F64>(args, stream);
  index_by_rows<C>(args, stream);
}

}  // namespace

void reduce_index(const ReduceArgs& args, Stream& stream) {
  if (args.op == ReduceOp::argmax) index_of<Max>(args, stream);
  else index_of<Min>(args, stream);
}

}  // namespace braid::cpu::BRAID_ISA
