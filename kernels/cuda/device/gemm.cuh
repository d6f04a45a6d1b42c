#pragma once
#include "cuda/device/loop.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"

// C = op(A) op(B) (+ bias, + C): a tile of C a block, a smaller tile a thread, the k dim in steps through two buffers of shared memory.
// Order   each element of C is one sum over k, in order: the bits do not depend on m, n or the tile.
// Names   the kernels are called after what they are in a linear layer: y = x Wᵀ + b, dx = dy W, dW = dyᵀ x.
namespace braid::cuda {

struct GemmParams {
  std::int64_t m, n, k, lda, ldb, ldc, batch_a, batch_b, batch_c, row_tiles, column_tiles, tiles;
  bool accumulate, packs_a, packs_b, packs_c;  // packs: rows may be read in fours
};

template <int Rows, int Columns, int Depth, int ThreadRows, int ThreadColumns>
struct GemmTile {
  static constexpr int kRows = Rows, kColumns = Columns, kDepth = Depth, kThreadRows = ThreadRows, kThreadColumns = ThreadColumns;
  static constexpr int kGemmThreads = (Rows / ThreadRows) * (Columns / ThreadColumns);
  static_assert(kGemmThreads == kThreads && Rows * Depth == 4 * kThreads && Columns * Depth == 4 * kThreads, "each thread loads four elements of A and B");
};

/// Four elements of a row from (row, column) on; those outside [rows, columns) are 0.
template <class E>
struct Four {
  typename E::A v[4];
  BRAID_DEVICE void load(const typename E::T* p, std::int64_t ld, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns, bool packs) {
    const typename E::T* from = p + row * ld + column;
    if (packs && row < rows && column + 4 <= columns) {
      const auto pack = load_pack<4>(from);
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = E::load(pack.v[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = row < rows && column + i < columns ? E::load(from[i]) : typename E::A{0};
    }
  }
};

/// A side of the product in shared memory, [depth, width]: op(A)'s rows or op(B)'s columns lie along the width.
/// `along_depth`: the operand's memory is dense along k (A as stored [m, k], B as stored [n, k]); its fours are then turned.
template <class E, bool along_depth, int kWidth, int kDepth>
struct GemmSide {
  static constexpr int kPad = 4;  // turned fours then fall on different banks, and packs stay aligned
  static constexpr int kStride = kWidth + kPad;
  static constexpr int kFours = along_depth ? kDepth / 4 : kWidth / 4;  // in a row of the tile, as memory has it
  Four<E> next;
  BRAID_DEVICE void load(const typename E::T* p, std::int64_t ld, std::int64_t wide, std::int64_t deep, std::int64_t width, std::int64_t depth, bool packs) {
    const int row = static_cast<int>(threadIdx.x) / kFours, column = static_cast<int>(threadIdx.x) % kFours * 4;
    if constexpr (along_depth) next.load(p, ld, wide + row, deep + column, width, depth, packs);
    else next.load(p, ld, deep + row, wide + column, depth, width, packs);
  }
  BRAID_DEVICE void store(typename E::A* shared) const {
    const int row = static_cast<int>(threadIdx.x) / kFours, column = static_cast<int>(threadIdx.x) % kFours * 4;
    if constexpr (along_depth) {
#pragma unroll
      for (int i = 0; i < 4; ++i) shared[(column + i) * kStride + row] = next.v[i];
    } else {
      Pack<typename E::A, 4> pack;
#pragma unroll
      for (int i = 0; i < 4; ++i) pack.v[i] = next.v[i];
      store_pack(shared + row * kStride + column, pack);
    }
  }
};

/// N neighbouring numbers from shared memory.
template <int N, class A>
BRAID_DEVICE void load_row(A (&to)[N], const A* from) {
  static_assert(N % 4 == 0);
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    const auto pack = load_pack<4>(from + i);
#pragma unroll
    for (int k = 0; k < 4; ++k) to[i + k] = pack.v[k];
  }
}

/// Four results of a row of C.
template <class E>
BRAID_DEVICE void store_four(typename E::T* c, const typename E::A* sum, const typename E::T* bias, std::int64_t count, bool accumulate, bool packs) {
  using A = typename E::A;
  Pack<typename E::T, 4> result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i >= count) break;
    A value = sum[i];
    if (accumulate) value += E::load(c[i]);
    else if (bias != nullptr) value += E::load(bias[i]);
    result.v[i] = E::store(value);
  }
  if (packs && count >= 4) {
    store_pack(c, result);
  } else {
    for (int i = 0; i < 4 && i < count; ++i) c[i] = result.v[i];
  }
}

template <class E, class Tile, bool ta, bool tb>
BRAID_DEVICE void gemm_block(const GemmParams& args, const typename E::T* a, const typename E::T* b, typename E::T* c, const typename E::T* bias) {
  using A = typename E::A;
  using SideA = GemmSide<E, !ta, Tile::kRows, Tile::kDepth>;
  using SideB = GemmSide<E, tb, Tile::kColumns, Tile::kDepth>;
  SIMT_SHARED(A, shared_a, [2][Tile::kDepth * SideA::kStride]);
  SIMT_SHARED(A, shared_b, [2][Tile::kDepth * SideB::kStride]);
  constexpr int across = Tile::kColumns / Tile::kThreadColumns;
  const int row = static_cast<int>(threadIdx.x) / across * Tile::kThreadRows, column = static_cast<int>(threadIdx.x) % across * Tile::kThreadColumns;
  SideA side_a;
  SideB side_b;
  for (std::int64_t tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
    const std::int64_t flat = tile / args.column_tiles, matrix = flat / args.row_tiles;
    const std::int64_t i0 = flat % args.row_tiles * Tile::kRows, j0 = tile % args.column_tiles * Tile::kColumns;
    const typename E::T* const from_a = a + matrix * args.batch_a;
    const typename E::T* const from_b = b + matrix * args.batch_b;
    A sum[Tile::kThreadRows][Tile::kThreadColumns];
#pragma unroll
    for (int i = 0; i < Tile::kThreadRows; ++i)
#pragma unroll
      for (int j = 0; j < Tile::kThreadColumns; ++j) sum[i][j] = A{0};
    if (args.k > 0) {
      side_a.load(from_a, args.lda, i0, 0, args.m, args.k, args.packs_a);
      side_b.load(from_b, args.ldb, j0, 0, args.n, args.k, args.packs_b);
      side_a.store(shared_a[0]);
      side_b.store(shared_b[0]);
    }
    __syncthreads();
    int now = 0;
    for (std::int64_t k0 = 0; k0 < args.k; k0 += Tile::kDepth, now ^= 1) {
      const bool more = k0 + Tile::kDepth < args.k;
      if (more) {
        side_a.load(from_a, args.lda, i0, k0 + Tile::kDepth, args.m, args.k, args.packs_a);
        side_b.load(from_b, args.ldb, j0, k0 + Tile::kDepth, args.n, args.k, args.packs_b);
      }
#pragma unroll
      for (int k = 0; k < Tile::kDepth; ++k) {
        A x[Tile::kThreadRows], y[Tile::kThreadColumns];
        load_row(x, shared_a[now] + k * SideA::kStride + row);
        load_row(y, shared_b[now] + k * SideB::kStride + column);
#pragma unroll
        for (int i = 0; i < Tile::kThreadRows; ++i)
#pragma unroll
          for (int j = 0; j < Tile::kThreadColumns; ++j) sum[i][j] += x[i] * y[j];
      }
      if (more) {
        side_a.store(shared_a[now ^ 1]);
        side_b.store(shared_b[now ^ 1]);
      }
      __syncthreads();  // the other buffer is filled, this one is free
    }
#pragma unroll
    for (int i = 0; i < Tile::kThreadRows; ++i) {
      const std::int64_t r = i0 + row + i;
#pragma unroll
      for (int j = 0; j < Tile::kThreadColumns; j += 4) {
        const std::int64_t s = j0 + column + j;
        if (r < args.m && s < args.n)
          store_four<E>(c + matrix * args.batch_c + r * args.ldc + s, sum[i] + j, bias == nullptr ? nullptr : bias + s, args.n - s, args.accumulate,
                        args.packs_c);
      }
    }
  }
}

/// y = x Wᵀ (+ b): A [m, k], B stored [n, k].
template <class E, class Tile>
__global__ void __launch_bounds__(kThreads)
    linear_forward(GemmParams args, const typename E::T* a, const typename E::T* b, typename E::T* c, const typename E::T* bias) {
  gemm_block<E, Tile, false, true>(args, a, b, c, bias);
}
/// dx = dy W: A [m, k], B [k, n].
template <class E, class Tile>
__global__ void __launch_bounds__(kThreads)
    linear_backward_input(GemmParams args, const typename E::T* a, const typename E::T* b, typename E::T* c, const typename E::T* bias) {
  gemm_block<E, Tile, false, false>(args, a, b, c, bias);
}
/// dW = dyᵀ x: A stored [k, m], B [k, n].
template <class E, class Tile>
__global__ void __launch_bounds__(kThreads)
    linear_backward_weight(GemmParams args, const typename E::T* a, const typename E::T* b, typename E::T* c, const typename E::T* bias) {
  gemm_block<E, Tile, true, false>(args, a, b, c, bias);
}
/// Both turned: no layer needs it.
template <class E, class Tile>
__global__ void __launch_bounds__(kThreads)
    matmul_both_transposed(GemmParams args, const typename E::T* a, const typename E::T* b, typename E::T* c, const typename E::T* bias) {
  gemm_block<E, Tile, true, true>(args, a, b, c, bias);
}

using PlainTile = GemmTile<64, 64, 16, 4, 4>;
using WideTile = GemmTile<128, 128, 8, 8, 8>;

template <class E, class Tile>
void launch_gemm(const GemmArgs& args, Stream& stream) {
  using T = typename E::T;
  const auto tiles = [](std::int64_t size, int step) { return (size + step - 1) / step; };
  const auto packs = [](const void* p, std::int64_t ld, std::int64_t batch) {
    return ld % 4 == 0 && batch % 4 == 0 && is_aligned<4>(static_cast<const T*>(p));
  };
  GemmParams params{.m = args.m,
                    .n = args.n,
                    .k = args.k,
                    .lda = args.lda,
                    .ldb = args.ldb,
                    .ldc = args.ldc,
                    .batch_a = args.batch_a,
                    .batch_b = args.batch_b,
                    .batch_c = args.batch_c,
                    .row_tiles = tiles(args.m, Tile::kRows),
                    .column_tiles = tiles(args.n, Tile::kColumns),
                    .tiles = 0,
                    .accumulate = args.accumulate,
                    .packs_a = packs(args.a, args.lda, args.batch_a),
                    .packs_b = packs(args.b, args.ldb, args.batch_b),
                    .packs_c = packs(args.c, args.ldc, args.batch_c)};
  params.tiles = params.row_tiles * params.column_tiles * args.batch;
  const auto kernel = args.ta ? args.tb ? matmul_both_transposed<E, Tile> : linear_backward_weight<E, Tile>
                      : args.tb ? linear_forward<E, Tile>
                                : linear_backward_input<E, Tile>;
  run("matmul", kernel, blocks_for(params.tiles, 1), kThreads, stream, params, static_cast<const T*>(args.a), static_cast<const T*>(args.b),
      static_cast<T*>(args.c), static_cast<const T*>(args.bias));
}

}  // namespace braid::cuda
