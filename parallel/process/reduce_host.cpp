#include "process/reduce_host.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include <braid/core/error.hpp>

#include "primitives/tree_sum.hpp"

namespace braid::parallel::process {
namespace {

constexpr std::int64_t kTile = 4096;  // elements: the tiles of a tree stay in the L1 cache

template <class T> constexpr bool kIs16 = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T> using Sum = std::conditional_t<kIs16<T>, float, T>;

template <class T> T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {  // wraps, as the tensors' sums do
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}
template <class T> T product_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  } else {
    return a * b;
  }
}
template <class T> T min_of(T a, T b) { return a < b || a != a ? a : b; }
template <class T> T max_of(T a, T b) { return a > b || a != a ? a : b; }

/// Calls f with the function that combines two elements.
template <class S, class F> void with_op(ReduceOp op, F&& f) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::mean: return f([](S x, S y) { return sum_of(x, y); });
    case ReduceOp::product: return f([](S x, S y) { return product_of(x, y); });
    case ReduceOp::min: return f([](S x, S y) { return min_of(x, y); });
    case ReduceOp::max: return f([](S x, S y) { return max_of(x, y); });
  }
}

template <class T, class Combine> struct Tree {
  using S = Sum<T>;
  Combine f;
  const std::function<const void*(std::size_t)>& source;
  std::vector<S> tiles;  // one for each level

  [[nodiscard]] const T* part(std::size_t rank, std::int64_t at) const {
    return static_cast<const T*>(source(rank)) + at;
  }

  /// Combines ranks [first, first + count) of elements [at, at + n) into tile `level`.
  void run(std::size_t first, std::size_t count, std::size_t level, std::int64_t at,
           std::int64_t n) {
    S* const tile = tiles.data() + static_cast<std::int64_t>(level) * kTile;
    if (count == 1) {
      const T* const a = part(first, at);
      for (std::int64_t i = 0; i < n; ++i) tile[i] = static_cast<S>(a[i]);
      return;
    }
    if (count == 2) {
      const T *const a = part(first, at), *const b = part(first + 1, at);
      for (std::int64_t i = 0; i < n; ++i) tile[i] = f(static_cast<S>(a[i]), static_cast<S>(b[i]));
      return;
    }
    const std::size_t left = std::bit_floor(count - 1);  // the largest power of two below count
    run(first, left, level, at, n);
    run(first + left, count - left, level + 1, at, n);
    const S* const other = tile + kTile;
    for (std::int64_t i = 0; i < n; ++i) tile[i] = f(tile[i], other[i]);
  }
};

template <class T>
void reduce(ReduceOp op, std::size_t ranks, const std::function<const void*(std::size_t)>& source,
            void* out, std::int64_t count) {
  using S = Sum<T>;
  const auto levels = static_cast<std::size_t>(std::bit_width(ranks - 1)) + 1;
  with_op<S>(op, [&](auto f) {
    Tree<T, decltype(f)> tree{f, source, std::vector<S>(levels * static_cast<std::size_t>(kTile))};
    for (std::int64_t at = 0; at < count; at += kTile) {
      const std::int64_t n = std::min(kTile, count - at);
      tree.run(0, ranks, 0, at, n);
      S* const tile = tree.tiles.data();
      if constexpr (std::is_floating_point_v<S>) {
        const auto divisor = static_cast<S>(ranks);
        for (std::int64_t i = 0; op == ReduceOp::mean && i < n; ++i) tile[i] /= divisor;
      }
      T* const to = static_cast<T*>(out) + at;
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(tile[i]);
    }
  });
}

/// The same tree for sums and means of float32 and float64, on the kernels of the CPU, which use
/// the whole width of its vectors.
void reduce_floats(DType dtype, bool mean, std::size_t ranks,
                   const std::function<const void*(std::size_t)>& source, char* out,
                   std::int64_t count) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  // The tree writes its result before it reads the memory of these ranks.
  bool late = false;
  for (std::size_t rank = 2; rank < ranks; ++rank) late = late || source(rank) == out;
  const std::size_t tile = static_cast<std::size_t>(kTile * size), levels = tree_levels(ranks);
  const auto scratch =
      ranks > 2 ? std::make_unique_for_overwrite<char[]>((levels + 1) * tile) : nullptr;
  const auto divisor = static_cast<double>(ranks);
  for (std::int64_t at = 0; at < count; at += kTile) {
    const std::int64_t n = std::min(kTile, count - at);
    char* const to = out + at * size;
    const auto part = [&](std::size_t rank) -> const void* {
      return static_cast<const char*>(source(rank)) + at * size;
    };
    const void* const sum =
        tree_sum(Device(), part, 0, ranks, late ? scratch.get() + levels * tile : to, scratch.get(),
                 n, dtype);
    // the product with a power of two has the same bits, and is faster
    if (mean && std::has_single_bit(ranks))
      compute_on(Device(), BinaryOp::mul, to, sum, nullptr, n, dtype, 1 / divisor);
    else if (mean) compute_on(Device(), BinaryOp::div, to, sum, nullptr, n, dtype, divisor);
    else if (sum != to) std::memcpy(to, sum, static_cast<std::size_t>(n * size));
  }
}

}  // namespace

void reduce_host(DType dtype, ReduceOp op, std::size_t ranks,
                 const std::function<const void*(std::size_t)>& source, void* out,
                 std::int64_t count) {
  if ((dtype == DType::float32 || dtype == DType::float64) &&
      (op == ReduceOp::sum || op == ReduceOp::mean) && ranks > 1)
    return reduce_floats(dtype, op == ReduceOp::mean, ranks, source, static_cast<char*>(out),
                         count);
  switch (dtype) {
    case DType::uint8: return reduce<std::uint8_t>(op, ranks, source, out, count);
    case DType::int32: return reduce<std::int32_t>(op, ranks, source, out, count);
    case DType::int64: return reduce<std::int64_t>(op, ranks, source, out, count);
    case DType::float16: return reduce<float16>(op, ranks, source, out, count);
    case DType::bfloat16: return reduce<bfloat16>(op, ranks, source, out, count);
    case DType::float32: return reduce<float>(op, ranks, source, out, count);
    case DType::float64: return reduce<double>(op, ranks, source, out, count);
    case DType::bool_: break;
  }
  throw InternalError(str("reduce_host: expected a number, got ", dtype));
}

void divide_host(DType dtype, void* data, std::int64_t count, int divisor) {
  const auto divide = [&]<class T>(T* values) {
    const auto by = static_cast<T>(divisor);
    for (std::int64_t i = 0; i < count; ++i) values[i] /= by;
  };
  if (dtype == DType::float32) divide(static_cast<float*>(data));
  else if (dtype == DType::float64) divide(static_cast<double*>(data));
  else throw InternalError(str("divide_host: expected float32 or float64, got ", dtype));
}

}  // namespace braid::parallel::process
