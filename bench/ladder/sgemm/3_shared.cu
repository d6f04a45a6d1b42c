#include "cuda/device/run.cuh"
#include "ladder/problems.hpp"

// Step 3: a block loads a tile of A and a tile of B into shared memory, which all its threads use.
// Gains  Every loaded element is used by the 32 threads of a row or column, so global memory is
//        read 32 times less.
// Costs  Still two reads for each multiply-add, now from shared memory. Shared memory serves one
//        warp per cycle, while an SM with 128 float32 lanes could do four warp-wide multiply-adds:
//        at most an eighth of the arithmetic units is busy.
namespace braid::ladder {

constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile* kTile) sgemm_shared_kernel(Sgemm g) {
  SIMT_SHARED(float, tile_a, [kTile][kTile]);
  SIMT_SHARED(float, tile_b, [kTile][kTile]);
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int i = static_cast<int>(blockIdx.y) * kTile + y,
            j = static_cast<int>(blockIdx.x) * kTile + x;
  float sum = 0;
  for (int p = 0; p < g.k; p += kTile) {
    tile_a[y][x] = i < g.m && p + x < g.k ? g.a[i * g.k + p + x] : 0.0f;    // fetches A
    tile_b[y][x] = p + y < g.k && j < g.n ? g.b[(p + y) * g.n + j] : 0.0f;  // fetches B
    __syncthreads();                                                        // tiles are complete
    for (int q = 0; q < kTile; ++q) {
      const float a = tile_a[y][q];  // reads A: one word for all lanes
      const float b = tile_b[q][x];  // reads B: 32 banks
      sum += a * b;
    }
    __syncthreads();  // all reads are done: the tiles may be overwritten
  }
  if (i < g.m && j < g.n) g.c[i * g.n + j] = sum;  // writes C
}

void sgemm_shared(const Sgemm& g, Stream& stream) {
  const dim3 grid(static_cast<unsigned>((g.n + kTile - 1) / kTile),
                  static_cast<unsigned>((g.m + kTile - 1) / kTile));
  cuda::run("sgemm", sgemm_shared_kernel, grid, dim3(kTile, kTile), stream, g);
}

}  // namespace braid::ladder
