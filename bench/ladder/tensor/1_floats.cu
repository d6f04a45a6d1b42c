#include "cuda/device/run.cuh"
#include "ladder/four.cuh"
#include "ladder/tensor/tile.cuh"

// Step 1: the tile of the sgemm ladder. bfloat16 is widened on its way into shared memory, and
// multiplied by the float32 units.
// Gains  It is right, and reads global memory once for each tile.
// Costs  A multiply-add of a lane is one instruction. Tensor cores have 16 times as many of them.
//        In shared memory an element takes twice the bytes that it needs.
namespace braid::ladder {

constexpr int kTile = 64, kEach = 4, kBlock = 256;
static_assert(kTile * kDepth == kChunk * kBlock);  // a thread loads one chunk of each operand

__global__ void __launch_bounds__(kBlock)
    tensor_floats_kernel(Product g, bool wide_a, bool wide_b) {
  SIMT_SHARED(Four, fours_a, [kDepth * kTile / 4]);
  SIMT_SHARED(Four, fours_b, [kDepth * kTile / 4]);
  float* const tile_a = reinterpret_cast<float*>(fours_a);
  float* const tile_b = reinterpret_cast<float*>(fours_b);
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / 16 * kEach, column = thread % 16 * kEach;
  const int i0 = static_cast<int>(blockIdx.y) * kTile, j0 = static_cast<int>(blockIdx.x) * kTile;
  const int line = thread % kTile, deep = thread / kTile * kChunk;
  float sum[kEach][kEach] = {};
  for (int p = 0; p < g.k; p += kDepth) {
    const int left = g.k - p - deep;
    const Chunk a = read_chunk(operand_a(g) + (i0 + line) * g.k + p + deep,
                               i0 + line < g.m ? inside(left) : 0, wide_a);
    const Chunk b = read_chunk(operand_b(g) + (j0 + line) * g.k + p + deep,
                               j0 + line < g.n ? inside(left) : 0, wide_b);
#pragma unroll
    for (int q = 0; q < kChunk; ++q) {
      tile_a[(deep + q) * kTile + line] = cuda::BF16::load(a.v[q]);  // widens A
      tile_b[(deep + q) * kTile + line] = cuda::BF16::load(b.v[q]);  // widens B
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < kDepth; ++q) {
      const Four x = simt::load_vector<Four>(tile_a + q * kTile + row);     // reads A
      const Four y = simt::load_vector<Four>(tile_b + q * kTile + column);  // reads B
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] += x.v[i] * y.v[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      if (i0 + row + i < g.m && j0 + column + j < g.n)
        // writes C
        static_cast<Half*>(g.c)[(i0 + row + i) * g.n + j0 + column + j] = Half(sum[i][j]);
}

void tensor_floats(const Product& g, Stream& stream) {
  cuda::run("tensor", tensor_floats_kernel, blocks_of(g, kTile), kBlock, stream, g,
            reads_chunks(g.a, g.k), reads_chunks(g.b, g.k));
}

}  // namespace braid::ladder
