#include "cuda/device/run.cuh"
#include "ladder/problems.hpp"

// Step 1: one thread for each element of C, the first version that comes to mind.
// Costs  The lanes of a warp differ in threadIdx.x, which is the row here. So the 32 lanes read the
//        same column in 32 rows of A, k elements apart: 32 sectors of 32 bytes, of which each lane
//        uses 4 bytes. C is written in the same way. All lanes read the same element of B.
namespace braid::ladder {

__global__ void __launch_bounds__(256) sgemm_naive_kernel(Sgemm g) {
  const int i = static_cast<int>(blockIdx.x * 32 + threadIdx.x),
            j = static_cast<int>(blockIdx.y * 8 + threadIdx.y);
  if (i >= g.m || j >= g.n) return;
  float sum = 0;
  for (int p = 0; p < g.k; ++p) {
    const float a = g.a[i * g.k + p];  // reads A
    const float b = g.b[p * g.n + j];  // reads B
    sum += a * b;
  }
  g.c[i * g.n + j] = sum;  // writes C
}

void sgemm_naive(const Sgemm& g, Stream& stream) {
  const dim3 grid(static_cast<unsigned>((g.m + 31) / 32), static_cast<unsigned>((g.n + 7) / 8));
  cuda::run("sgemm", sgemm_naive_kernel, grid, dim3(32, 8), stream, g);
}

}  // namespace braid::ladder
