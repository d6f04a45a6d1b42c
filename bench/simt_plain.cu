// The kernels compiled without instrumentation.
#include "simt_kernels.hpp"

#include "../tests/simt/gemm_tiled.hpp"

namespace bench {

__global__ void barrier_kernel(int count) {
  for (int i = 0; i < count; ++i) __syncthreads();
}

void barriers(int threads, int count) {
  braid::simt::launch_now(barrier_kernel, 1, threads, 0, count);
}

void gemm_plain(int n, const float* a, const float* b, float* c) {
  const unsigned tiles = static_cast<unsigned>((n + 127) / 128);
  braid::simt::launch_now(braid::simt_tests::gemm_tiled_kernel<1>, dim3(tiles, tiles),
                          braid::simt_tests::Tile::kThreads, 0, n, n, n, a, b, c);
}

}  // namespace bench
