#include <braid/core/kernel_args/scan.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"

// Running sums and products, and linear recurrences, computed in float64 (integers: modulo 2^64).
// Order  A line is split into tiles of fixed length, and a tile into blocks of 16. A result
//        combines the total before the tile with (the total of the tile before the block, combined
//        with the block up to the element). So the additions of neighbouring blocks do not depend
//        on each other. Recurrences, and scans along outer dims, run element by element.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kTileLength = 4096, kBlock = 16, kPanel = 128, kTaskElements = 16 * 1024;

template <class E> using Wide = std::conditional_t<kFloating<E>, double, std::uint64_t>;

template <class E> BRAID_INLINE Wide<E> widened(typename E::T x) {
  if constexpr (kThroughFloat<E> && E::kDType != DType::float32)
    return static_cast<double>(E::to_float(x));
  else return static_cast<Wide<E>>(x);
}
template <class E> BRAID_INLINE typename E::T narrowed(Wide<E> x) {
  if constexpr (kFloating<E>) return E::from_double(x);
  else return static_cast<typename E::T>(x);
}

struct Plus {
  static constexpr int kNeutral = 0;
  template <class A> static BRAID_INLINE A join(A a, A b) { return a + b; }
};
struct Times {
  static constexpr int kNeutral = 1;
  template <class A> static BRAID_INLINE A join(A a, A b) { return a * b; }
};

/// A line from its first element on; `step` is 1, or -1 in reverse.
template <class E> struct Line {
  const typename E::T* x;
  typename E::T* y;
  std::int64_t step;
};

/// Scans one tile of a line, given the total before it. Returns the tile's own total. If y is null,
/// computes only the total.
template <class C, class E> Wide<E> scan_tile(const Line<E>& line, std::int64_t n, Wide<E> before) {
  using A = Wide<E>;
  A blocks = A(C::kNeutral);
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    A inside = A(C::kNeutral);
    for (std::int64_t k = i; k < i + count; ++k) {
      inside = C::join(inside, widened<E>(line.x[k * line.step]));
      if (line.y) line.y[k * line.step] = narrowed<E>(C::join(before, C::join(blocks, inside)));
    }
    blocks = C::join(blocks, inside);
  }
  return blocks;
}

/// Scans a whole line on one thread.
template <class C, class E> void scan_line(const Line<E>& line, std::int64_t n) {
  Wide<E> before = Wide<E>(C::kNeutral);
  for (std::int64_t i = 0; i < n; i += kTileLength) {
    const Line<E> tile{line.x + i * line.step, line.y + i * line.step, line.step};
    before =
        C::join(before, scan_tile<C, E>(tile, n - i < kTileLength ? n - i : kTileLength, before));
  }
}

/// Scans a long line on several threads: first the totals of all tiles, then the results from the
/// totals before each tile. The bits are those of scan_line.
template <class C, class E>
void scan_long_line(const Line<E>& line, std::int64_t n, Stream& stream) {
  constexpr int most = 256;  // tiles at a time
  Wide<E> before[most + 1];
  before[0] = Wide<E>(C::kNeutral);
  for (std::int64_t start = 0; start < n; start += most * kTileLength) {
    const std::int64_t left = n - start < most * kTileLength ? n - start : most * kTileLength,
                       tiles = (left + kTileLength - 1) / kTileLength;
    const auto part = [&](std::int64_t t, bool write) {
      const std::int64_t i = start + t * kTileLength,
                         count = n - i < kTileLength ? n - i : kTileLength;
      const Line<E> tile{line.x + i * line.step, write ? line.y + i * line.step : nullptr,
                         line.step};
      const Wide<E> total = scan_tile<C, E>(tile, count, write ? before[t] : Wide<E>(C::kNeutral));
      if (!write) before[t + 1] = total;
    };
    const auto totals = [&](std::int64_t t) { part(t, false); };
    const auto results = [&](std::int64_t t) { part(t, true); };
    parallel_for(stream, tiles, totals);
    for (std::int64_t t = 0; t < tiles; ++t) before[t + 1] = C::join(before[t], before[t + 1]);
    parallel_for(stream, tiles, results);
    before[0] = before[tiles];
  }
}

/// Scans along outer dims, and recurrences: `width` running values, each updated by step(running,
/// x, a).
template <class E, class F>
void scan_columns(const ScanArgs& args, Stream& stream, Wide<E> first, F step) {
  using T = typename E::T;
  const std::int64_t panels = (args.inner + kPanel - 1) / kPanel, tasks = args.outer * panels;
  const auto run = [&](std::int64_t task) {
    const std::int64_t column = task % panels * kPanel,
                       width = args.inner - column < kPanel ? args.inner - column : kPanel;
    const std::int64_t at = task / panels * args.n * args.inner + column;
    Wide<E> running[kPanel];
    for (std::int64_t c = 0; c < width; ++c) running[c] = first;
    for (std::int64_t j = 0; j < args.n; ++j) {
      const std::int64_t row = at + (args.reverse ? args.n - 1 - j : j) * args.inner;
      const T* x = static_cast<const T*>(args.x) + row;
      const T* a = args.a ? static_cast<const T*>(args.a) + row : x;
      T* y = static_cast<T*>(args.y) + row;
      for (std::int64_t c = 0; c < width; ++c) {
        running[c] = step(running[c], widened<E>(x[c]), widened<E>(a[c]));
        y[c] = narrowed<E>(running[c]);
      }
    }
  };
  const std::int64_t each = args.n * (args.inner < kPanel ? args.inner : kPanel),
                     group = each >= kTaskElements ? 1 : kTaskElements / each;
  const auto tile = [&](std::int64_t t) {
    for (std::int64_t task = t * group; task < tasks && task < (t + 1) * group; ++task) run(task);
  };
  if (tasks <= group) tile(0);
  else parallel_for(stream, (tasks + group - 1) / group, tile);
}

template <class C, class E> void scan_of(const ScanArgs& args, Stream& stream) {
  using T = typename E::T;
  using A = Wide<E>;
  if (args.inner > 1)
    return scan_columns<E>(args, stream, A(C::kNeutral),
                           [](A running, A x, A) { return C::join(running, x); });
  const auto line = [&](std::int64_t row) {
    const std::int64_t at = row * args.n + (args.reverse ? args.n - 1 : 0);
    return Line<E>{static_cast<const T*>(args.x) + at, static_cast<T*>(args.y) + at,
                   args.reverse ? -1 : 1};
  };
  if (args.n > 4 * kTileLength && args.outer < 8) {
    for (std::int64_t row = 0; row < args.outer; ++row)
      scan_long_line<C, E>(line(row), args.n, stream);
    return;
  }
  const std::int64_t group = args.n >= kTaskElements ? 1 : kTaskElements / args.n;
  const auto tile = [&](std::int64_t t) {
    for (std::int64_t row = t * group; row < args.outer && row < (t + 1) * group; ++row)
      scan_line<C, E>(line(row), args.n);
  };
  if (args.outer <= group) tile(0);
  else parallel_for(stream, (args.outer + group - 1) / group, tile);
}

template <class E> void scan_by_op(const ScanArgs& args, Stream& stream) {
  using A = Wide<E>;
  switch (args.op) {
    case ScanOp::sum: return scan_of<Plus, E>(args, stream);
    case ScanOp::prod: return scan_of<Times, E>(args, stream);
    case ScanOp::recurrence:
      return scan_columns<E>(args, stream, A{},
                             [](A running, A x, A a) { return a * running + x; });
  }
}

}  // namespace

void scan(const ScanArgs& args, Stream& stream) {
  if (args.dtype != DType::int64 && args.dtype < DType::float16)
    fail_dtype("scan", "a floating-point dtype or int64", args.dtype);
  if (args.outer <= 0 || args.n <= 0 || args.inner <= 0) return;
  if (args.dtype == DType::int64) return scan_by_op<I64>(args, stream);
  with_floating(args.dtype, [&]<class E>() {
    scan_by_op<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
