#include "cuda/device/run.cuh"
#include "ladder/tensor/tile.cuh"

// Step 3: ldmatrix. Lanes pass the addresses of rows of 16 bytes, and receive fragments.
// Gains  One request reads four matrices of 8 x 8, a whole fragment of A or two of B. Before it
//        took four: a quarter of the issue slots for the same bytes.
// Costs  The rows are still 64 bytes apart: 16 passes for each request, where four would do.
namespace braid::ladder {

constexpr int kTile = 64, kBlock = 128, kDown = 2, kAcross = 4;  // four warps of 32 x 32

__global__ void __launch_bounds__(kBlock)
    tensor_ldmatrix_kernel(Product g, bool wide_a, bool wide_b, bool wide_c) {
  SIMT_SHARED(Chunk, tile_a, [kTile * kDepth / kChunk]);
  SIMT_SHARED(Chunk, tile_b, [kTile * kDepth / kChunk]);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / 2 * 32, column = warp % 2 * 32;
  const int i0 = static_cast<int>(blockIdx.y) * kTile, j0 = static_cast<int>(blockIdx.x) * kTile;
  // the place of a chunk of line `line` of a tile
  const auto place = [](int line, int chunk) { return line * 4 + chunk; };
  float sum[kDown][kAcross][4] = {};
  for (int p = 0; p < g.k; p += kDepth) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int line = thread / 4 + e * 32, deep = thread % 4 * kChunk;
      const int left = inside(g.k - p - deep);
      // keeps A
      simt::store_vector(tile_a + place(line, thread % 4),
                         read_chunk(operand_a(g) + (i0 + line) * g.k + p + deep,
                                    i0 + line < g.m ? left : 0, wide_a));
      // keeps B
      simt::store_vector(tile_b + place(line, thread % 4),
                         read_chunk(operand_b(g) + (j0 + line) * g.k + p + deep,
                                    j0 + line < g.n ? left : 0, wide_b));
    }
    __syncthreads();
#pragma unroll
    for (int deep = 0; deep < kDepth; deep += 16) {
      std::uint32_t a[kDown][4], b[kAcross / 2][4];
      const int r = lane % 8, low = lane / 8 % 2, high = lane / 16;  // row of a matrix, its number
#pragma unroll
      for (int i = 0; i < kDown; ++i)
        // reads A
        simt::ldmatrix_x4(a[i], tile_a + place(row + i * 16 + r + low * 8, deep / 8 + high));
#pragma unroll
      for (int j = 0; j < kAcross / 2; ++j)
        // reads B
        simt::ldmatrix_x4(b[j], tile_b + place(column + j * 16 + r + high * 8, deep / 8 + low));
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
          simt::mma_m16n8k16_bf16(sum[i][j], a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]},
                                  sum[i][j]);
    }
    __syncthreads();
  }
  write_sums(g, i0 + row, j0 + column, sum, wide_c);
}

void tensor_ldmatrix(const Product& g, Stream& stream) {
  cuda::run("tensor", tensor_ldmatrix_kernel, blocks_of(g, kTile), kBlock, stream, g,
            reads_chunks(g.a, g.k), reads_chunks(g.b, g.k), writes_pairs(g));
}

}  // namespace braid::ladder
