#pragma once
#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cpu/gemm_library.hpp"
#include "cpu/runtime/scratch.hpp"
#include "cpu/simd/gemm.hpp"
#include "cpu/simd/gemm_dot.hpp"
#include "cpu/simd/gemm_micro.hpp"
#include "cpu/simd/gemm_pack.hpp"

// Computes one tile of a floating-point product with each method.
namespace braid::cpu::BRAID_ISA {
namespace {

/// Pointers to the operands at a tile's first row and column.
template <class T> struct TileOperands {
  const T* a;
  const T* b;
  T* c;
  const T* bias;
};

template <class T>
BRAID_INLINE TileOperands<T> operands_of(const GemmArgs& args, const GemmTile& tile) {
  const T* a = static_cast<const T*>(args.a) + tile.matrix * args.batch_a +
               tile.i * (args.ta ? 1 : args.lda);
  const T* b = static_cast<const T*>(args.b) + tile.matrix * args.batch_b +
               tile.j * (args.tb ? args.ldb : 1);
  T* c = static_cast<T*>(args.c) + tile.matrix * args.batch_c + tile.i * args.ldc + tile.j;
  return {a, b, c, args.bias ? static_cast<const T*>(args.bias) + tile.j : nullptr};
}

/// Reads B in place; its rows are contiguous.
template <class T> BRAID_INLINE void direct_tile(const GemmArgs& args, const GemmTile& tile) {
  const auto [a, b, c, bias] = operands_of<T>(args, tile);
  multiply(Product<T>{tile.m, tile.n, args.k, a, args.ta ? 1 : args.lda, args.ta ? args.lda : 1, b,
                      args.ldb, c, args.ldc, bias, args.accumulate});
}

template <class T> BRAID_INLINE void turned_tile(const GemmArgs& args, const GemmTile& tile) {
  const auto [a, b, c, bias] = operands_of<T>(args, tile);
  const std::int64_t row = (tile.n + kLanesOf<T> - 1) / kLanesOf<T> * kLanesOf<T>;
  T* turned = static_cast<T*>(scratch(static_cast<std::size_t>(row * args.k) * sizeof(T)));
  transpose(b, args.ldb, tile.n, args.k, turned, row);
  multiply(Product<T>{tile.m, tile.n, args.k, a, args.ta ? 1 : args.lda, args.ta ? args.lda : 1,
                      turned, row, c, args.ldc, bias, args.accumulate});
}

template <class T> BRAID_INLINE void dot_tile(const GemmArgs& args, const GemmTile& tile) {
  const auto [a, b, c, bias] = operands_of<T>(args, tile);
  const T* columns = b;
  std::int64_t column = args.ldb;  // distance between columns of B
  if (!args.tb) {
    column = 1;
    if (args.n > 1 || args.ldb > 1) {  // few columns: transposing them is cheap
      column = args.k;
      T* turned = static_cast<T*>(scratch(static_cast<std::size_t>(tile.n * args.k) * sizeof(T)));
      transpose(b, args.ldb, args.k, tile.n, turned, column);
      columns = turned;
    }
  }
  multiply_dot(Product<T>{tile.m, tile.n, args.k, a, args.lda, 1, columns, column, c, args.ldc,
                          bias, args.accumulate});
}

/// Adds bias, the old C and the matrix of the epilogue `add` to the float sums of a 16-bit product
/// and rounds once.
template <class E>
void narrow_tile(const float* sums, const GemmArgs& args, const GemmTile& tile,
                 const TileOperands<typename E::T>& at) {
  using T = typename E::T;
  const T* other = args.epilogue == Epilogue::add
                       ? static_cast<const T*>(args.other) + (at.c - static_cast<T*>(args.c))
                       : nullptr;
  for (std::int64_t i = 0; i < tile.m; ++i, sums += tile.n) {
    T* row = at.c + i * args.ldc;
    for (std::int64_t j = 0; j < tile.n; j += E::kLanes) {
      const bool full = tile.n - j >= E::kLanes;
      const int count = full ? E::kLanes : static_cast<int>(tile.n - j);
      VF sum = full ? load<VF>(sums + j) : load_first<VF>(sums + j, count);
      if (at.bias) sum += full ? E::load(at.bias + j) : E::load_first(at.bias + j, count);
      if (args.accumulate) sum += full ? E::load(row + j) : E::load_first(row + j, count);
      if (other) sum += full ? E::load(other + j) : E::load_first(other + j, count);
      if (full) {
        E::store(row + j, sum);
      } else {
        E::store_first(row + j, sum, count);
      }
    }
    if (other) other += args.ldc;
  }
}

/// A panel of B has kPanel columns. kDepth steps of k are packed together, so that the panel stays
/// in the L1 cache while all rows of the tile are multiplied with it.
template <class T> constexpr std::int64_t kPanel = kColumnVectors * kLanesOf<T>;
template <class T>
constexpr std::int64_t kDepth = 32768 / (kPanel<T> * static_cast<std::int64_t>(sizeof(T))) < 256
                                    ? 32768 / (kPanel<T> * static_cast<std::int64_t>(sizeof(T)))
                                    : 256;

template <class E> void packed_tile(const GemmArgs& args, const GemmTile& tile) {
  using Stored = typename E::T;
  using T = Computed<E>;
  constexpr bool narrow = !std::is_same_v<Stored, T>;
  // padding, so that the rows of the copy do not share cache sets
  constexpr std::int64_t kApart = 16;
  const TileOperands<Stored> at = operands_of<Stored>(args, tile);
  const std::int64_t depth = args.k < kDepth<T> ? args.k : kDepth<T>;
  const std::int64_t panels = (tile.n + kPanel<T> - 1) / kPanel<T>;
  const std::int64_t a_apart = ((args.ta ? tile.m : depth) + 15) / 16 * 16 + kApart;
  const std::int64_t a_size = (args.ta ? depth : tile.m) * a_apart,
                     b_size = panels * kPanel<T> * depth, c_size = narrow ? tile.m * tile.n : 0;
  T* const a =
      static_cast<T*>(scratch(static_cast<std::size_t>(a_size + b_size + c_size) * sizeof(T)));
  T* const b = a + a_size;
  T* c = nullptr;
  std::int64_t ldc = args.ldc;
  if constexpr (narrow) {
    c = b + b_size;
    ldc = tile.n;
  } else {
    c = at.c;
  }
  std::int64_t from = 0;
  do {
    const std::int64_t steps = args.k - from < depth ? args.k - from : depth;
    if (args.ta) {
      copy_rows<E>(at.a + from * args.lda, args.lda, steps, tile.m, a, a_apart);
    } else {
      copy_rows<E>(at.a + from, args.lda, tile.m, steps, a, a_apart);
    }
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t j = panel * kPanel<T>,
                         width = tile.n - j < kPanel<T> ? tile.n - j : kPanel<T>;
      T* const part = b + panel * kPanel<T> * depth;
      if (args.tb) {
        transpose_rows<E>(at.b + j * args.ldb + from, args.ldb, width, steps, part, kPanel<T>);
      } else {
        copy_rows<E>(at.b + from * args.ldb + j, args.ldb, steps, width, part, kPanel<T>);
      }
      const T* bias = nullptr;
      if constexpr (!narrow) {
        if (from == 0 && at.bias) bias = at.bias + j;
      }
      const bool onto = from > 0 || (!narrow && args.accumulate);
      multiply(Product<T>{tile.m, width, steps, a, args.ta ? 1 : a_apart, args.ta ? a_apart : 1,
                          part, kPanel<T>, c + j, ldc, bias, onto});
    }
    from += steps;
  } while (from < args.k);
  if constexpr (narrow) narrow_tile<E>(c, args, tile, at);
}

template <class E>
BRAID_INLINE void floating_tile(const GemmArgs& args, GemmWay way, const GemmTile& tile) {
  if constexpr (!std::is_same_v<typename E::T, Computed<E>>) {
    packed_tile<E>(args, tile);
  } else {
    using T = typename E::T;
    switch (way) {
      case GemmWay::direct: return direct_tile<T>(args, tile);
      case GemmWay::turned: return turned_tile<T>(args, tile);
      case GemmWay::dot: return dot_tile<T>(args, tile);
      case GemmWay::library:
        if constexpr (std::is_same_v<T, float>) {
          const auto [a, b, c, bias] = operands_of<float>(args, tile);
          if (library_gemm({args.ta, args.tb, args.accumulate, tile.m, tile.n, args.k, a, args.lda,
                            b, args.ldb, c, args.ldc, bias}))
            return;
        }
        [[fallthrough]];
      case GemmWay::packed: return packed_tile<E>(args, tile);
    }
  }
}

}  // namespace

// An instance: gemm.hpp declares the function.
#define BRAID_GEMM_TILE(name, E)                                                   \
  void gemm_tile_##name(const GemmArgs& args, GemmWay way, const GemmTile& tile) { \
    floating_tile<E>(args, way, tile);                                             \
  }

}  // namespace braid::cpu::BRAID_ISA
