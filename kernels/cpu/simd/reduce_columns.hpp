#pragma once
#include <braid/core/kernel_args/reduce.hpp>

#include "cpu/simd/reduce.hpp"

// Reductions over outer dims, vectorised over the innermost kept dim, such as the column sums of a
// matrix. Each column uses the tree of tree.hpp: x[j] of a column is lane j % 16 of row j / 16.
// Columns are processed in panels of 128. In a panel, each of the 16 lanes is reduced separately,
// then the lanes are combined.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kPanel = 128;

/// The vectors of a panel.
template <class V> struct PanelRow {
  V v[kPanel / kLanesOf<V>];
};

/// A Cascade of panel rows. The caller writes each subtree to next() before it pushes it.
template <class C, class V, int depth> class PanelCascade {
 public:
  explicit PanelCascade(int vectors) : vectors_(vectors) {}
  BRAID_INLINE V* next() { return stack_[top_].v; }
  BRAID_INLINE void push(int level) {
    ++top_;
    for (std::uint64_t c = count_ >> level; (c & 1) != 0; c >>= 1) join_top();
    count_ += std::uint64_t{1} << level;
  }
  BRAID_INLINE const V* finish() {
    while (top_ > 1) join_top();
    return stack_[0].v;
  }

 private:
  BRAID_INLINE void join_top() {
    --top_;
    for (int c = 0; c < vectors_; ++c)
      stack_[top_ - 1].v[c] = C::join(stack_[top_ - 1].v[c], stack_[top_].v[c]);
  }
  PanelRow<V> stack_[depth];
  int vectors_, top_ = 0;
  std::uint64_t count_ = 0;
};

/// Columns [0, columns) of the rows that `over` (operand 1) visits from x; columns are contiguous.
template <class L> struct Panel {
  using T = typename L::T;
  using V = typename L::V;
  const T* x;
  const Loop& over;
  std::int64_t columns;

  [[nodiscard]] BRAID_INLINE int vectors() const {
    return static_cast<int>((columns + L::kLanes - 1) / L::kLanes);
  }
  [[nodiscard]] BRAID_INLINE const T* row(std::int64_t j) const {
    return x + offset_at(over, 1, j);
  }
  [[nodiscard]] BRAID_INLINE V load(const T* row, int vector) const {
    const std::int64_t left = columns - vector * L::kLanes;
    return left >= L::kLanes ? L::load(row + vector * L::kLanes)
                             : L::load_first(row + vector * L::kLanes, static_cast<int>(left));
  }
};

template <class C, int R, class L>
BRAID_INLINE typename L::V tree_of_rows(const typename L::T* const* rows, int vector) {
  if constexpr (R == 1) return L::load(rows[0] + vector * L::kLanes);
  else
    return C::join(tree_of_rows<C, R / 2, L>(rows, vector),
                   tree_of_rows<C, R / 2, L>(rows + R / 2, vector));
}
template <class C, int R, class L>
BRAID_INLINE typename L::V tree_of_partial_rows(const Panel<L>& panel,
                                                const typename L::T* const* rows, int vector) {
  if constexpr (R == 1) return panel.load(rows[0], vector);
  else
    return C::join(tree_of_partial_rows<C, R / 2>(panel, rows, vector),
                   tree_of_partial_rows<C, R / 2>(panel, rows + R / 2, vector));
}

/// Combines R rows first, first + 16, … into `out`.
template <class C, int R, class L>
__attribute__((noinline)) void join_panel_rows(const Panel<L>& panel, std::int64_t first,
                                               typename L::V* out) {
  const typename L::T* rows[R];
  for (int r = 0; r < R; ++r) rows[r] = panel.row(first + r * kRowLanes);
  const int whole = static_cast<int>(panel.columns / L::kLanes), all = panel.vectors();
  for (int c = 0; c < whole; ++c) out[c] = tree_of_rows<C, R, L>(rows, c);
  if (whole < all) out[whole] = tree_of_partial_rows<C, R>(panel, rows, whole);
}

/// Reduces lane `lane` of every column: rows lane, lane + 16, …
template <class C, class L>
void reduce_panel_lane(const Panel<L>& panel, int lane, typename L::V* out) {
  using V = typename L::V;
  const int vectors = panel.vectors();
  if (lane >= panel.over.n) {
    for (int c = 0; c < vectors; ++c) out[c] = splat<V>(C::template neutral<Lane<V>>());
    return;
  }
  std::int64_t left = (panel.over.n - lane + kRowLanes - 1) / kRowLanes, j = lane;
  if (left == 1) return join_panel_rows<C, 1>(panel, j, out);
  if (left == 4) return join_panel_rows<C, 4>(panel, j, out);
  PanelCascade<C, V, 40> cascade(vectors);
  for (; left >= 16; left -= 16, j += 16 * kRowLanes)
    join_panel_rows<C, 16>(panel, j, cascade.next()), cascade.push(4);
  for (; left >= 4; left -= 4, j += 4 * kRowLanes)
    join_panel_rows<C, 4>(panel, j, cascade.next()), cascade.push(2);
  for (; left >= 1; left -= 1, j += kRowLanes)
    join_panel_rows<C, 1>(panel, j, cascade.next()), cascade.push(0);
  const V* result = cascade.finish();
  for (int c = 0; c < vectors; ++c) out[c] = result[c];
}

/// Reduces the columns of a panel to kPanel lanes in `result`. If there is a stream, threads share
/// the 16 lanes.
template <class C, class L>
void reduce_panel(const Panel<L>& panel, typename L::V* result, Stream* stream) {
  using V = typename L::V;
  // combines lane l with l + 8 first, then l + 4, …
  static constexpr std::int8_t kOrder[kRowLanes] = {0, 8, 4, 12, 2, 10, 6, 14,
                                                    1, 9, 5, 13, 3, 11, 7, 15};
  const int vectors = panel.vectors();
  PanelCascade<C, V, 6> cascade(vectors);
  if (stream == nullptr) {
    for (const int lane : kOrder) {
      reduce_panel_lane<C>(panel, lane, cascade.next());
      cascade.push(0);
    }
  } else {
    PanelRow<V> lanes[kRowLanes];
    const auto tile = [&](std::int64_t lane) {
      reduce_panel_lane<C>(panel, static_cast<int>(lane), lanes[lane].v);
    };
    parallel_for(*stream, kRowLanes, tile);
    for (const int lane : kOrder) {
      for (int c = 0; c < vectors; ++c) cascade.next()[c] = lanes[lane].v[c];
      cascade.push(0);
    }
  }
  const V* joined = cascade.finish();
  for (int c = 0; c < vectors; ++c) result[c] = joined[c];
}

/// `keep` without its innermost dim: the loop over panels.
struct Columns {
  Loop outer{};
  std::int64_t columns, out_stride, panels;
  explicit Columns(const Loop& keep) : outer(keep) {
    const int inner = --outer.rank;
    columns = keep.size[inner];
    out_stride = keep.stride[0][inner];
    panels = (columns + kPanel - 1) / kPanel;
    outer.n = columns == 0 ? 0 : keep.n / columns;
  }
};

/// Calls write(value, out) for every kept element.
template <class C, class L, class W>
void reduce_columns(const ReduceArgs& args, int out_bytes, Stream& stream, W write) {
  using V = typename L::V;
  const Columns columns(args.keep);
  const std::int64_t tasks = columns.outer.n * columns.panels, elements = args.keep.n * args.over.n;
  const bool small = elements <= 32 * 1024, share_lanes = !small && tasks < 8;
  const auto tile = [&](std::int64_t t) {
    const Position at = position_of(columns.outer, t / columns.panels);
    const std::int64_t first = t % columns.panels * kPanel;
    const std::int64_t width = columns.columns - first < kPanel ? columns.columns - first : kPanel;
    const Panel<L> panel{
        static_cast<const typename L::T*>(args.x) + offset_of(columns.outer, 1, at) + first,
        args.over, width};
    PanelRow<V> result;
    reduce_panel<C>(panel, result.v, share_lanes ? &stream : nullptr);
    char* out = static_cast<char*>(args.out) +
                (offset_of(columns.outer, 0, at) + first * columns.out_stride) * out_bytes;
    Lane<V> lane[kPanel];
    __builtin_memcpy(lane, result.v, sizeof lane);
    for (std::int64_t c = 0; c < width; ++c)
      write(lane[c], out + c * columns.out_stride * out_bytes);
  };
  if (small || share_lanes) {
    for (std::int64_t t = 0; t < tasks; ++t) tile(t);
  } else {
    parallel_for(stream, tasks, tile);
  }
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
