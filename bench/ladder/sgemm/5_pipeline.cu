#include "cuda/device/run.cuh"
#include "ladder/four.cuh"
#include "ladder/problems.hpp"

// Step 5: no waiting, neither for global memory nor for a bank.
// Gains  Two buffers. While one tile step along k is multiplied, the next one is loaded: B by
//        cp.async, which bypasses the registers; A through registers, because it is transposed. One
//        barrier for each step instead of two.
//        Rows are swizzled. Row d of A's tile stores element w at w ^ turn(d), so the two groups of
//        a row of A are stored to banks 16 apart: 16 rows x 2 use all 32 banks.
//        The two groups of a thread are not neighbours, but the groups of the 4 x 8 lanes of a warp
//        are: loads of B use 32 banks, and C is written in whole sectors.
// Costs  Twice the shared memory.
namespace braid::ladder {

constexpr int kTile = 128, kDepth = 8, kEach = 8, kBlock = 256;
// distance between the two Fours of a thread: the rows and columns that 4 x 8 lanes cover
constexpr int kRowsApart = 16, kColumnsApart = 32;
static_assert(kDepth * kTile == 4 * kBlock);  // a thread loads one Four of each tile

/// The XOR mask (swizzle) of the indices in row d of A's tile. It is a multiple of 4, so that a
/// Four stays contiguous.
BRAID_DEVICE constexpr int turn(int d) { return d / 4 * 16; }

__global__ void __launch_bounds__(kBlock, 2)
    sgemm_pipeline_kernel(Sgemm g, bool wide_a, bool wide_b) {
  SIMT_SHARED(Four, fours_a, [2][kDepth * kTile / 4]);
  SIMT_SHARED(Four, fours_b, [2][kDepth * kTile / 4]);
  const auto buffer = [](Four* fours) { return reinterpret_cast<float*>(fours); };
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / 2 * 2 * kRowsApart + lane / 8 * 4,
            column = warp % 2 * 2 * kColumnsApart + lane % 8 * 4;
  const int i0 = static_cast<int>(blockIdx.y) * kTile, j0 = static_cast<int>(blockIdx.x) * kTile;
  // the Four of A that this thread loads
  const int row_a = thread / (kDepth / 4), column_a = thread % (kDepth / 4) * 4;
  const int row_b = thread / (kTile / 4), column_b = thread % (kTile / 4) * 4;
  Four next_a;
  // Starts to load the tiles at p: A into registers, B into its buffer. Elements outside the matrix
  // become 0.
  const auto fetch = [&](int p, float* tile_b) {
    const int exist_a = i0 + row_a < g.m ? g.k - p - column_a : 0;
    const float* const from_a = g.a + (i0 + row_a) * g.k + p + column_a;
    next_a =
        // fetches A
        wide_a && exist_a >= 4 ? simt::load_vector<Four>(from_a) : read_some(from_a, exist_a, 0.0f);
    const int left = p + row_b < g.k ? g.n - j0 - column_b : 0, exist_b = left < 0   ? 0
                                                                          : left < 4 ? left
                                                                                     : 4;
    const float* const from_b = exist_b > 0 ? g.b + (p + row_b) * g.n + j0 + column_b : g.b;
    float* const to = tile_b + row_b * kTile + column_b;
    if (wide_b) {
      simt::cp_async16(to, from_b, 4 * exist_b);  // fetches B
    } else {
#pragma unroll
      for (int q = 0; q < 4; ++q)
        simt::cp_async4(to + q, q < exist_b ? from_b + q : g.b, q < exist_b ? 4 : 0);
    }
  };
  // Completes the loads that this thread started with fetch.
  const auto arrive = [&](float* tile_a) {
#pragma unroll
    for (int q = 0; q < 4; ++q)
      tile_a[(column_a + q) * kTile + (row_a ^ turn(column_a))] = next_a.v[q];  // turns A
    simt::cp_async_wait_all();
  };
  float sum[kEach][kEach] = {};
  fetch(0, buffer(fours_b[0]));
  arrive(buffer(fours_a[0]));
  __syncthreads();
  for (int p = 0, now = 0; p < g.k; p += kDepth, now ^= 1) {
    const float* const tile_a = buffer(fours_a[now]);
    const float* const tile_b = buffer(fours_b[now]);
    const bool more = p + kDepth < g.k;
    if (more) fetch(p + kDepth, buffer(fours_b[now ^ 1]));
#pragma unroll
    for (int q = 0; q < kDepth; ++q) {
      Four a[2], b[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // reads A
        a[h] = simt::load_vector<Four>(tile_a + q * kTile + ((row + h * kRowsApart) ^ turn(q)));
        // reads B
        b[h] = simt::load_vector<Four>(tile_b + q * kTile + column + h * kColumnsApart);
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] += a[i / 4].v[i % 4] * b[j / 4].v[j % 4];
    }
    if (more) arrive(buffer(fours_a[now ^ 1]));
    __syncthreads();  // the next buffer is complete, this one is free
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int r = i0 + row + i / 4 * kRowsApart + i % 4;
#pragma unroll
    for (int j = 0; j < kEach; j += 4) {
      const int s = j0 + column + j / 4 * kColumnsApart, exist = r < g.m ? g.n - s : 0;
      const Four c{{sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]}};
      if (wide_b && exist >= 4) simt::store_vector(g.c + r * g.n + s, c);  // writes C
      else write_some(g.c + r * g.n + s, c, exist);
    }
  }
}

void sgemm_pipeline(const Sgemm& g, Stream& stream) {
  const dim3 grid(static_cast<unsigned>((g.n + kTile - 1) / kTile),
                  static_cast<unsigned>((g.m + kTile - 1) / kTile));
  cuda::run("sgemm", sgemm_pipeline_kernel, grid, kBlock, stream, g, reads_fours(g.a, g.k),
            reads_fours(g.b, g.n) && reads_fours(g.c, g.n));
}

}  // namespace braid::ladder
