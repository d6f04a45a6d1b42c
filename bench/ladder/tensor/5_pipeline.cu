#include "cuda/device/run.cuh"
#include "ladder/tensor/tile.cuh"

// Step 5: no waiting for global memory. cp.async copies the tiles of the next steps while one is
// multiplied.
// Gains  Three stages: the copies of two steps are on their way. One barrier for each step instead
//        of two, and no registers for elements that are only passing.
// Costs  Three times the shared memory. A warp still reads two fragments for every four products.
namespace braid::ladder {

constexpr int kTile = 64, kBlock = 128, kDown = 2, kAcross = 4, kStages = 3;

__global__ void __launch_bounds__(kBlock)
    tensor_pipeline_kernel(Product g, bool wide_a, bool wide_b, bool wide_c) {
  SIMT_SHARED(Chunk, tiles_a, [kStages][kTile * kDepth / kChunk]);
  SIMT_SHARED(Chunk, tiles_b, [kStages][kTile * kDepth / kChunk]);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / 2 * 32, column = warp % 2 * 32;
  const int i0 = static_cast<int>(blockIdx.y) * kTile, j0 = static_cast<int>(blockIdx.x) * kTile;
  const auto place = [](int line, int chunk) { return line * 4 + (chunk ^ line / 2 % 4); };
  // Starts to copy the tiles at p to a stage. A group of copies is closed for each step, also for
  // those after the last, so that the wait counts steps.
  const auto copy = [&](int p, int stage) {
#pragma unroll
    for (int e = 0; e < 2 && p < g.k; ++e) {
      const int line = thread / 4 + e * 32, deep = thread % 4 * kChunk;
      const int left = inside(g.k - p - deep);
      copy_chunk(tiles_a[stage][place(line, thread % 4)].v,
                 operand_a(g) + (i0 + line) * g.k + p + deep, i0 + line < g.m ? left : 0, wide_a);
      copy_chunk(tiles_b[stage][place(line, thread % 4)].v,
                 operand_b(g) + (j0 + line) * g.k + p + deep, j0 + line < g.n ? left : 0, wide_b);
    }
    simt::cp_async_commit();
  };
  float sum[kDown][kAcross][4] = {};
  for (int stage = 0; stage < kStages - 1; ++stage) copy(stage * kDepth, stage);
  for (int p = 0, now = 0; p < g.k; p += kDepth, now = (now + 1) % kStages) {
    simt::cp_async_wait<kStages - 2>();
    __syncthreads();  // this step's tiles are there, and those of the last step are free
    copy(p + (kStages - 1) * kDepth, (now + kStages - 1) % kStages);
#pragma unroll
    for (int deep = 0; deep < kDepth; deep += 16) {
      std::uint32_t a[kDown][4], b[kAcross / 2][4];
      const int r = lane % 8, low = lane / 8 % 2, high = lane / 16;
#pragma unroll
      for (int i = 0; i < kDown; ++i)
        // reads A
        simt::ldmatrix_x4(a[i], &tiles_a[now][place(row + i * 16 + r + low * 8, deep / 8 + high)]);
#pragma unroll
      for (int j = 0; j < kAcross / 2; ++j)
        // reads B
        simt::ldmatrix_x4(b[j],
                          &tiles_b[now][place(column + j * 16 + r + high * 8, deep / 8 + low)]);
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
          simt::mma_m16n8k16_bf16(sum[i][j], a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]},
                                  sum[i][j]);
    }
  }
  write_sums(g, i0 + row, j0 + column, sum, wide_c);
}

void tensor_pipeline(const Product& g, Stream& stream) {
  cuda::run("tensor", tensor_pipeline_kernel, blocks_of(g, kTile), kBlock, stream, g,
            reads_chunks(g.a, g.k), reads_chunks(g.b, g.k), writes_pairs(g));
}

}  // namespace braid::ladder
