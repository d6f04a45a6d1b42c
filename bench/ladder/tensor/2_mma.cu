#include "cuda/device/run.cuh"
#include "ladder/tensor/tile.cuh"

// Step 2: tensor cores. mma.sync multiplies 16 x 16 elements of A by 16 x 8 of B, from and to the
// registers of a warp: 2048 multiply-adds in one instruction.
// Gains  A warp has 32 x 32 elements of C, eight instructions for each 16 of k instead of 512.
//        Tiles stay bfloat16: half the shared memory.
// Costs  A lane reads its fragments in pairs of elements. The eight rows that a request reads are
//        64 bytes apart, so four of them are in the same banks: four passes.
namespace braid::ladder {

constexpr int kTile = 64, kBlock = 128, kDown = 2, kAcross = 4;  // four warps of 32 x 32

__global__ void __launch_bounds__(kBlock)
    tensor_mma_kernel(Product g, bool wide_a, bool wide_b, bool wide_c) {
  SIMT_SHARED(Chunk, tile_a, [kTile * kDepth / kChunk]);
  SIMT_SHARED(Chunk, tile_b, [kTile * kDepth / kChunk]);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / 2 * 32, column = warp % 2 * 32;
  const int i0 = static_cast<int>(blockIdx.y) * kTile, j0 = static_cast<int>(blockIdx.x) * kTile;
  // two elements of line `line` of a tile, from k = `deep` on
  const auto pair = [](const Chunk* tile, int line, int deep) {
    return reinterpret_cast<const std::uint32_t*>(tile) + (line * kDepth + deep) / 2;
  };
  float sum[kDown][kAcross][4] = {};
  for (int p = 0; p < g.k; p += kDepth) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int line = thread / 4 + e * 32, deep = thread % 4 * kChunk;
      const int left = inside(g.k - p - deep);
      // keeps A
      simt::store_vector(tile_a + line * 4 + thread % 4,
                         read_chunk(operand_a(g) + (i0 + line) * g.k + p + deep,
                                    i0 + line < g.m ? left : 0, wide_a));
      // keeps B
      simt::store_vector(tile_b + line * 4 + thread % 4,
                         read_chunk(operand_b(g) + (j0 + line) * g.k + p + deep,
                                    j0 + line < g.n ? left : 0, wide_b));
    }
    __syncthreads();
#pragma unroll
    for (int deep = 0; deep < kDepth; deep += 16) {
      std::uint32_t a[kDown][4], b[kAcross][2];
      const int g8 = lane / 4, at = deep + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          a[i][r] = *pair(tile_a, row + i * 16 + g8 + r % 2 * 8, at + r / 2 * 8);  // reads A
#pragma unroll
      for (int j = 0; j < kAcross; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r)
          b[j][r] = *pair(tile_b, column + j * 8 + g8, at + r * 8);  // reads B
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int j = 0; j < kAcross; ++j) simt::mma_m16n8k16_bf16(sum[i][j], a[i], b[j], sum[i][j]);
    }
    __syncthreads();
  }
  write_sums(g, i0 + row, j0 + column, sum, wide_c);
}

void tensor_mma(const Product& g, Stream& stream) {
  cuda::run("tensor", tensor_mma_kernel, blocks_of(g, kTile), kBlock, stream, g,
            reads_chunks(g.a, g.k), reads_chunks(g.b, g.k), writes_pairs(g));
}

}  // namespace braid::ladder
