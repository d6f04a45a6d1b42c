// C = A B, row major: three ways.
#include "gemm_tiled.hpp"
#include "kernels.hpp"
#include "run_kernel.hpp"

namespace braid::simt_tests {

// The textbook kernel: a 16x16 tile, one output a thread, two barriers a step.
__global__ void gemm_textbook_kernel(int m, int n, int k, const float* a, const float* b,
                                     float* c) {
  SIMT_SHARED(float, as, [16][16]);
  SIMT_SHARED(float, bs, [16][17]);
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * 16 + y,
            col = static_cast<int>(blockIdx.x) * 16 + x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    as[y][x] = row < m && k0 + x < k ? a[static_cast<std::size_t>(row) * k + k0 + x] : 0.0f;
    bs[y][x] = k0 + y < k && col < n ? b[static_cast<std::size_t>(k0 + y) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  if (row < m && col < n) c[static_cast<std::size_t>(row) * n + col] = sum;
}

// 64x64 by 16, two stages of cp.async, 4x4 outputs a thread.
__global__ void gemm_async_kernel(int m, int n, int k, const float* a, const float* b, float* c) {
  SIMT_SHARED(float, as, [2][64][16]);
  SIMT_SHARED(float, bs, [2][16][64]);
  const int t = static_cast<int>(threadIdx.x), m0 = static_cast<int>(blockIdx.y) * 64,
            n0 = static_cast<int>(blockIdx.x) * 64;
  const auto fetch = [&](int s, int k0) {
    const int ar = m0 + t / 4, ac = k0 + t % 4 * 4, br = k0 + t / 16, bc = n0 + t % 16 * 4;
    const bool in_a = ar < m && ac < k, in_b = br < k && bc < n;
    simt::cp_async16(&as[s][t / 4][t % 4 * 4], in_a ? a + static_cast<std::size_t>(ar) * k + ac : a,
                     in_a ? 16 : 0);
    simt::cp_async16(&bs[s][t / 16][t % 16 * 4],
                     in_b ? b + static_cast<std::size_t>(br) * n + bc : b, in_b ? 16 : 0);
    simt::cp_async_commit();
  };
  float acc[4][4] = {};
  const int row = t / 16 * 4, col = t % 16 * 4;
  fetch(0, 0);
  int s = 0;
  for (int k0 = 0; k0 < k; k0 += 16, s ^= 1) {
    if (k0 + 16 < k) {
      fetch(s ^ 1, k0 + 16);
      simt::cp_async_wait<1>();
    } else {
      simt::cp_async_wait<0>();
    }
    __syncthreads();
    for (int kk = 0; kk < 16; ++kk) {
      const float4 y = simt::load4(&bs[s][kk][col]);
      for (int i = 0; i < 4; ++i) {
        const float x = as[s][row + i][kk];
        acc[i][0] += x * y.x;
        acc[i][1] += x * y.y;
        acc[i][2] += x * y.z;
        acc[i][3] += x * y.w;
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    if (m0 + row + i < m && n0 + col < n)
      simt::store4(c + static_cast<std::size_t>(m0 + row + i) * n + n0 + col,
                   make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]));
}

void gemm_tiled(int m, int n, int k, const float* a, const float* b, float* c) {
  run(gemm_tiled_kernel<0>, dim3((n + 127) / 128, (m + 127) / 128), Tile::kThreads, 0, m, n, k, a,
      b, c);
}
void gemm_textbook(int m, int n, int k, const float* a, const float* b, float* c) {
  run(gemm_textbook_kernel, dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16), 0, m, n, k, a, b, c);
}
void gemm_async(int m, int n, int k, const float* a, const float* b, float* c) {
  run(gemm_async_kernel, dim3((n + 63) / 64, (m + 63) / 64), 256, 0, m, n, k, a, b, c);
}

}  // namespace braid::simt_tests
