// Correct kernels.
#include "gemm_tiled.hpp"
#include "kernels.hpp"

namespace braid::simt_tests {

template <class T> inline constexpr bool kIsBfloat16 = false;
template <> inline constexpr bool kIsBfloat16<simt::bfloat16_t> = true;

// On tensor cores: 64x64 by 16 per block of 4 warps (2x2). Sizes are multiples of the tile.
template <class T>
__global__ void gemm_narrow_kernel(int n, int k, const T* a, const T* b, float* c) {
  SIMT_SHARED(T, as, [64][24]);  // 8 more than needed: the rows of ldmatrix are in different banks
  SIMT_SHARED(T, bs, [16][72]);
  const int t = static_cast<int>(threadIdx.x), lane = t & 31, warp = t >> 5;
  const int m0 = static_cast<int>(blockIdx.y) * 64, n0 = static_cast<int>(blockIdx.x) * 64,
            wm = warp / 2 * 32, wn = warp % 2 * 32;
  float acc[2][4][4] = {};
  for (int k0 = 0; k0 < k; k0 += 16) {
    simt::store_vector(
        &as[t / 2][t % 2 * 8],
        simt::load_vector<uint4>(a + static_cast<std::size_t>(m0 + t / 2) * k + k0 + t % 2 * 8));
    simt::store_vector(
        &bs[t / 8][t % 8 * 8],
        simt::load_vector<uint4>(b + static_cast<std::size_t>(k0 + t / 8) * n + n0 + t % 8 * 8));
    __syncthreads();
    std::uint32_t x[2][4], y[4][2];
    for (int i = 0; i < 2; ++i)
      simt::ldmatrix_x4(x[i], &as[wm + i * 16 + (lane & 15)][(lane >> 4) * 8]);
    for (int j = 0; j < 4; ++j) simt::ldmatrix_x2_trans(y[j], &bs[lane & 15][wn + j * 8]);
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j) {
        if constexpr (kIsBfloat16<T>) simt::mma_m16n8k16_bf16(acc[i][j], x[i], y[j], acc[i][j]);
        else simt::mma_m16n8k16_fp16(acc[i][j], x[i], y[j], acc[i][j]);
      }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j) {
      const int r = m0 + wm + i * 16 + (lane >> 2), q = n0 + wn + j * 8 + (lane & 3) * 2;
      simt::store_vector(c + static_cast<std::size_t>(r) * n + q,
                         make_float2(acc[i][j][0], acc[i][j][1]));
      simt::store_vector(c + static_cast<std::size_t>(r + 8) * n + q,
                         make_float2(acc[i][j][2], acc[i][j][3]));
    }
}

void gemm_tiled(int m, int n, int k, const float* a, const float* b, float* c) {
  run(gemm_tiled_kernel<0>, dim3((n + 127) / 128, (m + 127) / 128), Tile::kThreads, 0, m, n, k, a,
      b, c);
}
void gemm_narrow(int m, int n, int k, const simt::bfloat16_t* a, const simt::bfloat16_t* b,
                 float* c) {
  run(gemm_narrow_kernel<simt::bfloat16_t>, dim3(n / 64, m / 64), 128, 0, n, k, a, b, c);
}
void gemm_narrow(int m, int n, int k, const simt::half_t* a, const simt::half_t* b, float* c) {
  run(gemm_narrow_kernel<simt::half_t>, dim3(n / 64, m / 64), 128, 0, n, k, a, b, c);
}

}  // namespace braid::simt_tests
