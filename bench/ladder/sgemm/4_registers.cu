#include "cuda/device/run.cuh"
#include "ladder/four.cuh"
#include "ladder/problems.hpp"

// Step 4: a thread keeps 8 x 8 elements of C in registers, and accesses memory in groups of four
// floats.
// Gains  16 numbers, read from shared memory in four accesses, are used for 64 multiply-adds. A is
//        transposed when it is stored, so that its columns can be read in groups of four too.
// Costs  Bank conflicts in two places, because the layout is the most obvious one:
//        - stores of A: the lanes of a warp hold 16 rows x 2 groups. Element q of both groups of a
//          row is stored to the bank of that row: two passes instead of one.
//        - loads of B: lane x loads the groups at 8 x and 8 x + 4. Of the 8 lanes that are served
//          together, lanes x and x + 4 access the same banks: two passes instead of one.
//        C is written with the same gaps: half of every sector belongs to another store. And all
//        threads wait while a tile is loaded.
namespace braid::ladder {

constexpr int kTile = 128, kDepth = 8, kEach = 8, kBlock = 256;
static_assert(kDepth * kTile == 4 * kBlock);  // a thread loads one Four of each tile

__global__ void __launch_bounds__(kBlock, 2)
    sgemm_registers_kernel(Sgemm g, bool wide_a, bool wide_b) {
  SIMT_SHARED(Four, fours_a, [kDepth * kTile / 4]);
  SIMT_SHARED(Four, fours_b, [kDepth * kTile / 4]);
  float* const tile_a = reinterpret_cast<float*>(fours_a);  // [kDepth, kTile]: transposed
  float* const tile_b = reinterpret_cast<float*>(fours_b);  // [kDepth, kTile]
  const int thread = static_cast<int>(threadIdx.x), row = thread / 16 * kEach,
            column = thread % 16 * kEach;
  const int i0 = static_cast<int>(blockIdx.y) * kTile, j0 = static_cast<int>(blockIdx.x) * kTile;
  // the Four of A that this thread loads
  const int row_a = thread / (kDepth / 4), column_a = thread % (kDepth / 4) * 4;
  const int row_b = thread / (kTile / 4), column_b = thread % (kTile / 4) * 4;
  float sum[kEach][kEach] = {};
  for (int p = 0; p < g.k; p += kDepth) {
    const int exist_a = i0 + row_a < g.m ? g.k - p - column_a : 0;
    const int exist_b = p + row_b < g.k ? g.n - j0 - column_b : 0;
    const float* const from_a = g.a + (i0 + row_a) * g.k + p + column_a;
    const float* const from_b = g.b + (p + row_b) * g.n + j0 + column_b;
    const Four next_a =
        // fetches A
        wide_a && exist_a >= 4 ? simt::load_vector<Four>(from_a) : read_some(from_a, exist_a, 0.0f);
    const Four next_b =
        // fetches B
        wide_b && exist_b >= 4 ? simt::load_vector<Four>(from_b) : read_some(from_b, exist_b, 0.0f);
#pragma unroll
    for (int q = 0; q < 4; ++q) tile_a[(column_a + q) * kTile + row_a] = next_a.v[q];  // turns A
    simt::store_vector(tile_b + row_b * kTile + column_b, next_b);                     // keeps B
    __syncthreads();
#pragma unroll
    for (int q = 0; q < kDepth; ++q) {
      Four a[2], b[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        a[h] = simt::load_vector<Four>(tile_a + q * kTile + row + 4 * h);     // reads A
        b[h] = simt::load_vector<Four>(tile_b + q * kTile + column + 4 * h);  // reads B
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] += a[i / 4].v[i % 4] * b[j / 4].v[j % 4];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int r = i0 + row + i;
#pragma unroll
    for (int j = 0; j < kEach; j += 4) {
      const int s = j0 + column + j, exist = r < g.m ? g.n - s : 0;
      const Four c{{sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]}};
      if (wide_b && exist >= 4) simt::store_vector(g.c + r * g.n + s, c);  // writes C
      else write_some(g.c + r * g.n + s, c, exist);
    }
  }
}

void sgemm_registers(const Sgemm& g, Stream& stream) {
  const dim3 grid(static_cast<unsigned>((g.n + kTile - 1) / kTile),
                  static_cast<unsigned>((g.m + kTile - 1) / kTile));
  cuda::run("sgemm", sgemm_registers_kernel, grid, kBlock, stream, g, reads_fours(g.a, g.k),
            reads_fours(g.b, g.n) && reads_fours(g.c, g.n));
}

}  // namespace braid::ladder
