#include "cuda/device/run.cuh"
#include "ladder/problems.hpp"

// Step 1: a thread for an element of C, as one writes it first.
// Costs  The lanes of a warp differ in threadIdx.x, and here that is the row. So the 32 lanes read
//        the same column of 32 rows of A, k apart: 32 sectors of 32 bytes for 4 bytes of each. C is
//        written the same way. B is one element for all lanes.
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
