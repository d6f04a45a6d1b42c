#include "cuda/device/run.cuh"
#include "ladder/problems.hpp"

// Step 2: the same threads, but the lanes of a warp are neighbours in a row.
// Gains  The lanes read 32 neighbouring elements of a row of B, 128 bytes in 4 sectors, and write C
//        in the same way. All lanes read the same element of A. Nothing else has changed.
// Costs  Two reads for each multiply-add: every element of A is read n times, every element of B m
//        times.
namespace braid::ladder {

__global__ void __launch_bounds__(256) sgemm_coalesced_kernel(Sgemm g) {
  const int j = static_cast<int>(blockIdx.x * 32 + threadIdx.x),
            i = static_cast<int>(blockIdx.y * 8 + threadIdx.y);
  if (i >= g.m || j >= g.n) return;
  float sum = 0;
  for (int p = 0; p < g.k; ++p) {
    const float a = g.a[i * g.k + p];  // reads A
    const float b = g.b[p * g.n + j];  // reads B
    sum += a * b;
  }
  g.c[i * g.n + j] = sum;  // writes C
}

void sgemm_coalesced(const Sgemm& g, Stream& stream) {
  const dim3 grid(static_cast<unsigned>((g.n + 31) / 32), static_cast<unsigned>((g.m + 7) / 8));
  cuda::run("sgemm", sgemm_coalesced_kernel, grid, dim3(32, 8), stream, g);
}

}  // namespace braid::ladder
