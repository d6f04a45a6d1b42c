#pragma once
// C = A B, row major, 128x128 by 8, double buffered, 8x8 outputs per thread. Edges of any size.
// Included by the tests and by bench/simt.cpp, which compiles it twice: with and without
// instrumentation.
#include "simt/simt.hpp"

namespace braid::simt_tests {

struct Tile {
  static constexpr int kM = 128, kN = 128, kK = 8, kTM = 8, kTN = 8;
  static constexpr int kThreads = (kM / kTM) * (kN / kTN);
  static_assert(kThreads * 4 == kM * kK && kThreads * 4 == kN * kK,
                "each thread moves one float4 of A and one of B");
};

// Loads four elements of a row, with zeros past its end. Each variant has its own function, because
// the linker must not use the instrumented one for all.
template <int Variant>
__device__ inline float4 load_edge(const float* p, bool row, int column, int columns,
                                   bool aligned) {
  if (aligned && row && column + 3 < columns) return simt::load4(p);
  return make_float4(
      row && column < columns ? p[0] : 0.0f, row && column + 1 < columns ? p[1] : 0.0f,
      row && column + 2 < columns ? p[2] : 0.0f, row && column + 3 < columns ? p[3] : 0.0f);
}

template <int Variant>  // 0; other values make other kernels from the same code
__global__ void __launch_bounds__(Tile::kThreads)
    gemm_tiled_kernel(int m, int n, int k, const float* __restrict__ a, const float* __restrict__ b,
                      float* __restrict__ c) {
  SIMT_SHARED(float, as, [2][Tile::kK][Tile::kM]);
  SIMT_SHARED(float, bs, [2][Tile::kK][Tile::kN]);
  const int t = static_cast<int>(threadIdx.x), m0 = static_cast<int>(blockIdx.y) * Tile::kM,
            n0 = static_cast<int>(blockIdx.x) * Tile::kN;
  const int a_row = t / (Tile::kK / 4), a_col = t % (Tile::kK / 4) * 4, b_row = t / (Tile::kN / 4),
            b_col = t % (Tile::kN / 4) * 4;
  const int row = t / (Tile::kN / Tile::kTN) * Tile::kTM,
            col = t % (Tile::kN / Tile::kTN) * Tile::kTN;
  const bool k4 = k % 4 == 0, n4 = n % 4 == 0;
  float4 ra, rb;
  const auto load = [&](int k0) {
    ra = load_edge<Variant>(a + static_cast<std::size_t>(m0 + a_row) * k + k0 + a_col,
                            m0 + a_row < m, k0 + a_col, k, k4);
    rb = load_edge<Variant>(b + static_cast<std::size_t>(k0 + b_row) * n + n0 + b_col,
                            k0 + b_row < k, n0 + b_col, n, n4);
  };
  const auto store = [&](int s) {
    as[s][a_col][a_row] = ra.x;
    as[s][a_col + 1][a_row] = ra.y;
    as[s][a_col + 2][a_row] = ra.z;
    as[s][a_col + 3][a_row] = ra.w;
    simt::store4(&bs[s][b_row][b_col], rb);
  };
  float acc[Tile::kTM][Tile::kTN] = {};
  load(0);
  store(0);
  __syncthreads();
  int s = 0;
  for (int k0 = 0; k0 < k; k0 += Tile::kK, s ^= 1) {
    const bool more = k0 + Tile::kK < k;
    if (more) load(k0 + Tile::kK);
#pragma unroll
    for (int kk = 0; kk < Tile::kK; ++kk) {
      float x[Tile::kTM], y[Tile::kTN];
#pragma unroll
      for (int i = 0; i < Tile::kTM; i += 4)
        *reinterpret_cast<float4*>(x + i) = *reinterpret_cast<const float4*>(&as[s][kk][row + i]);
#pragma unroll
      for (int j = 0; j < Tile::kTN; j += 4)
        *reinterpret_cast<float4*>(y + j) = *reinterpret_cast<const float4*>(&bs[s][kk][col + j]);
#pragma unroll
      for (int i = 0; i < Tile::kTM; ++i)
#pragma unroll
        for (int j = 0; j < Tile::kTN; ++j) acc[i][j] += x[i] * y[j];
    }
    if (more) store(s ^ 1);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < Tile::kTM; ++i) {
    const int r = m0 + row + i;
    if (r >= m) continue;
#pragma unroll
    for (int j = 0; j < Tile::kTN; j += 4) {
      const int q = n0 + col + j;
      float* p = c + static_cast<std::size_t>(r) * n + q;
      if (n4 && q + 3 < n) {
        simt::store4(p, make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]));
      } else {
        for (int e = 0; e < 4 && q + e < n; ++e) p[e] = acc[i][j + e];
      }
    }
  }
}

}  // namespace braid::simt_tests
