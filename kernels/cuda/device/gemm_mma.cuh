#pragma once
#include "cuda/device/gemm.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/device/mma_side.cuh"

// Products of float16, bfloat16 and, as TF32, float32 on tensor cores, with the parameters, the
// order of tiles and the names of gemm.cuh. A block computes a tile of C, a warp a part of it in
// fragments of 16 × 8 (mma.sync, float32 sums). k advances in steps through kStages buffers of
// shared memory: while one step is multiplied, cp.async loads those after it.
// Order   each element of C is one sum over its part of k, 16 at a time (TF32: 8): the bits do not
//         depend on m, n or the tile. Tiny products (gemm_small.cuh) are sums one element at a
//         time.
// After   NVIDIA, CUTLASS: the stages and the XOR swizzle. Ootomo and Yokota 2022,
//         arXiv:2203.03341: numbers of two parts, whose sums leave the tensor cores every few
//         steps, because those cut off what they add.
namespace braid::cuda {

/// The layout of a block: warps of WarpRows × WarpColumns. `Aligned`: every row of both operands is
/// aligned to 16 bytes.
template <int Rows, int Columns, int Depth, int Stages, int WarpRows, int WarpColumns, bool Aligned,
          int MinBlocks>
struct MmaTile {
  static constexpr int kRows = Rows, kColumns = Columns, kDepth = Depth, kStages = Stages,
                       kWarpRows = WarpRows, kWarpColumns = WarpColumns, kMinBlocks = MinBlocks;
  static constexpr bool kAligned = Aligned;
  static constexpr int kParts = 1;  // of a number, see Fragment
  static constexpr int kWarpsAcross = Columns / WarpColumns;
  static constexpr int kBlock = Rows / WarpRows * kWarpsAcross * 32;
  // A line of the results that a warp rearranges. The eight elements of padding make the banks of
  // its rows differ.
  static constexpr int kResultLine = WarpColumns + 8;
  static constexpr std::size_t kOperands = std::size_t{Stages} * (Rows + Columns) * Depth * 2,
                               kResults = std::size_t{kBlock} / 32 * WarpRows * kResultLine * 4;
  static constexpr std::size_t kShared = kOperands > kResults ? kOperands : kResults;
  static_assert(Rows % WarpRows == 0 && Columns % WarpColumns == 0 && WarpRows % 16 == 0 &&
                WarpColumns % 32 == 0 && Depth % 16 == 0 && kBlock >= Rows &&
                (Stages & (Stages - 1)) == 0);
};

/// A tile of float32 that is multiplied as TF32. Numbers of two parts are summed over a step, 16 of
/// k, and these sums are added in float32: a tensor core cuts off what it adds.
template <int Rows, int Columns, int Depth, int Stages, int WarpRows, int WarpColumns, bool Aligned,
          int MinBlocks, int Parts>
struct Tf32Tile : MmaTile<Rows, Columns, Depth, Stages, WarpRows, WarpColumns, Aligned, MinBlocks> {
  static constexpr int kParts = Parts;
  static_assert(Depth == 16);
  static constexpr std::size_t kOperands = std::size_t{Stages} * (Rows + Columns) * Depth * 4;
  static constexpr std::size_t kShared =
      kOperands > Tf32Tile::kResults ? kOperands : Tf32Tile::kResults;
};

/// Stores a warp's results, of which the first is at row i and column j of the matrix. A thread's
/// own elements are two neighbours; through shared memory (`lines`) it gets four, and the lanes of
/// a warp whole sectors of a row. The loop that stores is not unrolled: it has the epilogue once.
template <class E, class Tile, int M, int N>
BRAID_DEVICE void store_results(const GemmParams<E>& p, const GemmItem& item,
                                const float (&sum)[M][N][4], float* lines, std::int64_t i,
                                std::int64_t j) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n) {
      float* const to = lines + (m * 16 + lane / 4) * Tile::kResultLine + n * 8 + lane % 4 * 2;
      store_pack(to, Pack<float, 2>{sum[m][n][0], sum[m][n][1]});  // results
      store_pack(to + 8 * Tile::kResultLine, Pack<float, 2>{sum[m][n][2], sum[m][n][3]});  // below
    }
  __syncwarp();
  constexpr int across = N * 2;  // fours in a row
#pragma unroll 1
  for (int at = lane; at < M * 16 * across; at += 32) {
    const int row = at / across, column = at % across * 4;
    const std::int64_t left = p.n - j - column;
    if (i + row >= p.m) break;
    if (left <= 0) continue;
    const auto four = load_pack<4>(lines + row * Tile::kResultLine + column);
    if (p.partial != nullptr)
      store_part<E>(
          p, p.partial + ((item.split * p.batch + item.matrix) * p.m + i + row) * p.n + j + column,
          four.v, left);
    else
      finish_four<E>(p, p.c + item.matrix * p.batch_c + (i + row) * p.ldc + j + column, four.v,
                     p.bias == nullptr ? nullptr : p.bias + item.matrix * p.batch_bias + j + column,
                     left);
  }
}

/// Computes a block's tile. A layout is what a side needs to find its elements: the leading dim of
/// a matrix (MmaSide), or a Gather (ConvSide).
template <class E, class Tile, class SideA, class SideB, class LayoutA, class LayoutB>
BRAID_DEVICE void mma_block(const GemmParams<E>& p, const LayoutA& layout_a,
                            const LayoutB& layout_b) {
  using T = typename E::T;
  constexpr int kStages = Tile::kStages, rows = Tile::kWarpRows / 16,
                columns = Tile::kWarpColumns / 8;
  SIMT_DYN_SHARED(T, shared);
  T* const shared_a = shared;
  T* const shared_b = shared + kStages * SideA::kSize;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / Tile::kWarpsAcross * Tile::kWarpRows,
            column = warp % Tile::kWarpsAcross * Tile::kWarpColumns;
  const GemmItem item = item_of(p);
  const std::int64_t i0 = item.row_of(Tile::kRows), j0 = item.column_of(Tile::kColumns),
                     k0 = item.split * p.depth;
  const std::int64_t deep = p.k - k0 < p.depth ? p.k - k0 : p.depth;
  const int steps = static_cast<int>((deep + Tile::kDepth - 1) / Tile::kDepth);
  const int last = static_cast<int>(deep - static_cast<std::int64_t>(steps - 1) * Tile::kDepth);
  SideA side_a;
  SideB side_b;
  side_a.start(p.a + item.matrix * p.batch_a, layout_a, i0, k0, p.m);
  side_b.start(p.b + item.matrix * p.batch_b, layout_b, j0, k0, p.n);
  const auto load = [&](int step) {
    if (step < steps) {
      const int stage = step % kStages, depth = step < steps - 1 ? Tile::kDepth : last;
      side_a.load(shared_a + stage * SideA::kSize, layout_a, p.packs_a, depth);
      side_b.load(shared_b + stage * SideB::kSize, layout_b, p.packs_b, depth);
    }
    simt::cp_async_commit();  // a group for each step, also for those after the last
  };
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) load(step);

  const bool sums = p.sum_a != nullptr && item.column == 0 && thread < Tile::kRows;
  RowSum<float> row_sum{};
  constexpr bool promotes = Tile::kParts > 1;
  float sum[rows][columns][4] = {}, recent[promotes ? rows : 1][columns][4] = {};
  const auto promote = [&] {
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[i][j][e] += recent[i][j][e], recent[i][j][e] = 0;
  };
  for (int step = 0; step < steps; ++step) {
    simt::cp_async_wait<kStages - 2>();
    __syncthreads();  // this step has arrived, and the buffer of the step before it is free
    load(step + kStages - 1);
    const T* const a = shared_a + step % kStages * SideA::kSize;
    const T* const b = shared_b + step % kStages * SideB::kSize;
#pragma unroll
    for (int k = 0; k < Tile::kDepth / SideA::kDeep; ++k) {
      Fragment<Tile::kParts> x[rows], y[columns / 2];
#pragma unroll
      for (int i = 0; i < rows; ++i) SideA::read_a(x[i].part[0], a, row + i * 16, k, lane);
#pragma unroll
      for (int j = 0; j < columns / 2; ++j)
        SideB::read_b(y[j].part[0], b, column + j * 16, k, lane);
#pragma unroll
      for (int i = 0; i < rows; ++i) split<E>(x[i]);
#pragma unroll
      for (int j = 0; j < columns / 2; ++j) split<E>(y[j]);
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          if constexpr (promotes) multiply_parts<E>(recent[i][j], x[i], y[j / 2], j % 2);
          else multiply_parts<E>(sum[i][j], x[i], y[j / 2], j % 2);
        }
    }
    if constexpr (promotes) promote();
    if (sums) {
      for (int k = 0; k < Tile::kDepth; k += kRowGroup)
        row_sum.add(tree_sum<kRowGroup, float>(
            [&](int g) { return E::load(SideA::element(a, thread, k + g)); }));
    }
  }
  if (sums && i0 + thread < p.m) {
    if (p.partial != nullptr) p.partial_sums[item.split * p.m + i0 + thread] = row_sum.value();
    else p.sum_a[i0 + thread] = E::store(row_sum.value());
  }
  __syncthreads();  // from here on, the results are in the memory of the operands
  store_results<E, Tile>(
      p, item, sum, reinterpret_cast<float*>(shared) + warp * (Tile::kWarpRows * Tile::kResultLine),
      i0 + row, j0 + column);
}

/// The product of two matrices.
template <class E, class Tile, bool ta, bool tb>
BRAID_DEVICE void gemm_mma_block(const GemmParams<E>& p) {
  using T = typename E::T;
  using SideA = MmaSide<T, !ta, Tile::kRows, Tile::kDepth, Tile::kBlock, Tile::kAligned>;
  using SideB = MmaSide<T, tb, Tile::kColumns, Tile::kDepth, Tile::kBlock, Tile::kAligned>;
  mma_block<E, Tile, SideA, SideB>(p, p.lda, p.ldb);
}

//                       rows cols depth stages warp's   aligned blocks per SM
using Mma128 = MmaTile<128, 128, 32, 4, 64, 64, true, 2>;
using Mma64 = MmaTile<64, 64, 32, 4, 32, 32, true, 4>;
using Mma64Any = MmaTile<64, 64, 32, 4, 32, 32, false, 4>;
using Tf32Large = Tf32Tile<128, 128, 16, 4, 64, 64, true, 2, 1>;
using Tf32Small = Tf32Tile<64, 64, 16, 4, 32, 32, true, 4, 1>;
using Tf32Any = Tf32Tile<64, 64, 16, 4, 32, 32, false, 4, 1>;
using Tf32x3Large = Tf32Tile<128, 64, 16, 4, 64, 32, true, 2, 2>;
using Tf32x3Small = Tf32Tile<64, 64, 16, 4, 32, 32, true, 3, 2>;
using Tf32x3Any = Tf32Tile<64, 64, 16, 4, 32, 32, false, 3, 2>;

}  // namespace braid::cuda
