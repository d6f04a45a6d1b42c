#include <braid/core/kernel_args/index.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"

// Rows of a table by index: embedding lookup and its gradient.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kTileElements = 16 * 1024;
constexpr int kTableParts = 8;

void check_indices(const char* op, const std::int64_t* index, std::int64_t rows, std::int64_t low,
                   std::int64_t table_rows) {
  for (std::int64_t i = 0; i < rows; ++i)
    if (index[i] < low || index[i] >= table_rows)
      fail_index(op, "indices", low, table_rows, index[i], i);
}

BRAID_INLINE std::int64_t wrapped(std::int64_t index, std::int64_t table_rows) {
  return index < 0 ? index + table_rows : index;
}

/// to[j] += from[j]. Integers wrap around; bool is "or".
template <class E>
BRAID_INLINE void add_row(typename E::T* to, const typename E::T* from, std::int64_t width) {
  using V = typename E::V;
  const auto add = [](V a, V b) {
    using L = Lane<V>;
    if constexpr (kFloating<E>) {
      return a + b;
    } else if constexpr (E::kDType == DType::bool_) {
      return a | b;
    } else {
      using U = Vec<std::make_unsigned_t<L>, E::kLanes>;
      return (V)((U)a + (U)b);
    }
  };
  for (; width >= E::kLanes; width -= E::kLanes, to += E::kLanes, from += E::kLanes)
    E::store(to, add(E::load(to), E::load(from)));
  if (width > 0) {
    const int k = static_cast<int>(width);
    E::store_first(to, add(E::load_first(to, k), E::load_first(from, k)), k);
  }
}

/// Threads own parts of the table, not of the indices, so that each row gets its additions in the
/// order of i.
template <class E> void scatter_add(const ScatterAddRowsArgs& args, Stream& stream) {
  using T = typename E::T;
  T* table = static_cast<T*>(args.table);
  const T* dy = static_cast<const T*>(args.dy);
  const auto add_between = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = 0; i < args.rows; ++i) {
      const std::int64_t row = wrapped(args.index[i], args.table_rows);
      if (row >= first && row < last)
        add_row<E>(table + row * args.width, dy + i * args.width, args.width);
    }
  };
  if (args.rows * args.width <= kTileElements) return add_between(0, args.table_rows);
  const std::int64_t part = (args.table_rows + kTableParts - 1) / kTableParts;
  const auto tile = [&](std::int64_t t) { add_between(t * part, (t + 1) * part); };
  parallel_for(stream, kTableParts, tile);
}

}  // namespace

void gather_rows(const GatherRowsArgs& args, Stream& stream) {
  if (args.rows <= 0) return;
  check_indices(args.op, args.index, args.rows, args.wrap ? -args.table_rows : 0, args.table_rows);
  if (args.width <= 0) return;
  const std::int64_t bytes = args.width * element_bytes(args.dtype);
  const char* table = static_cast<const char*>(args.table);
  char* out = static_cast<char*>(args.out);
  const std::int64_t group = args.width >= kTileElements ? 1 : kTileElements / args.width;
  const auto tile = [&](std::int64_t t) {
    const std::int64_t end = (t + 1) * group < args.rows ? (t + 1) * group : args.rows;
    for (std::int64_t i = t * group; i < end; ++i)
      __builtin_memcpy(out + i * bytes, table + wrapped(args.index[i], args.table_rows) * bytes,
                       static_cast<std::size_t>(bytes));
  };
  if (args.rows <= group) tile(0);
  else parallel_for(stream, (args.rows + group - 1) / group, tile);
}

void scatter_add_rows(const ScatterAddRowsArgs& args, Stream& stream) {
  if (args.rows <= 0) return;
  check_indices("scatter_add_rows", args.index, args.rows, -args.table_rows, args.table_rows);
  if (args.width <= 0) return;
  with_element(args.dtype, [&]<class E>() {
    scatter_add<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
