// The product compiled with the checker's instrumentation.
#include "simt_kernels.hpp"

#include "../tests/simt/gemm_tiled.hpp"

namespace bench {

void gemm_checked(int n, const float* a, const float* b, float* c) {
  const unsigned tiles = static_cast<unsigned>((n + 127) / 128);
  braid::simt::launch_now(braid::simt_tests::gemm_tiled_kernel<2>, dim3(tiles, tiles),
                          braid::simt_tests::Tile::kThreads, 0, n, n, n, a, b, c);
}

}  // namespace bench
