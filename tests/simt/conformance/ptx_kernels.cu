#include "ptx_kernels.hpp"

#include "simt/run_kernel.hpp"

namespace braid::simt_tests {

template <int Kind>
__global__ void mma_once_kernel(const std::uint32_t* a, const std::uint32_t* b, const float* c,
                                float* d) {
  const unsigned lane = threadIdx.x;
  std::uint32_t ra[4], rb[2];
  float rc[4], rd[4];
  for (int i = 0; i < 4; ++i) ra[i] = a[4 * lane + i];
  for (int i = 0; i < 2; ++i) rb[i] = b[2 * lane + i];
  for (int i = 0; i < 4; ++i) rc[i] = c[4 * lane + i];
  if constexpr (Kind == 0) simt::mma_m16n8k8_tf32(rd, ra, rb, rc);
  else if constexpr (Kind == 1) simt::mma_m16n8k16_bf16(rd, ra, rb, rc);
  else simt::mma_m16n8k16_fp16(rd, ra, rb, rc);
  for (int i = 0; i < 4; ++i) d[4 * lane + i] = rd[i];
}

template <int Count, bool Transposed>
__global__ void ldmatrix_once_kernel(const std::uint16_t* source, std::uint32_t* r) {
  SIMT_SHARED(std::uint16_t, rows, [32][8]);
  const unsigned lane = threadIdx.x;
  for (int i = 0; i < 8; ++i) rows[lane][i] = source[8 * lane + i];
  __syncthreads();
  std::uint32_t got[Count];
  const void* row = rows[lane];
  if constexpr (Transposed) {
    if constexpr (Count == 1) simt::ldmatrix_x1_trans(got, row);
    else if constexpr (Count == 2) simt::ldmatrix_x2_trans(got, row);
    else simt::ldmatrix_x4_trans(got, row);
  } else {
    if constexpr (Count == 1) simt::ldmatrix_x1(got, row);
    else if constexpr (Count == 2) simt::ldmatrix_x2(got, row);
    else simt::ldmatrix_x4(got, row);
  }
  for (int i = 0; i < Count; ++i) r[4 * lane + i] = got[i];
}

__global__ void cp_async_once_kernel(int size, const unsigned char* source,
                                     unsigned char* destination) {
  SIMT_SHARED(uint4, pieces, [64]);
  const int t = static_cast<int>(threadIdx.x), bytes = t % (size + 1);
  unsigned char* piece = reinterpret_cast<unsigned char*>(pieces) + t * size;
  if (size == 16) simt::cp_async16(piece, source + t * size, bytes);
  else if (size == 8) simt::cp_async8(piece, source + t * size, bytes);
  else simt::cp_async4(piece, source + t * size, bytes);
  simt::cp_async_wait_all();
  __syncthreads();
  for (int i = 0; i < size; ++i) destination[t * size + i] = piece[i];
}

__global__ void cp_async_stages_kernel(int stages, const float* source, float* out) {
  SIMT_SHARED(float, buffer, [2]);
  simt::cp_async4(&buffer[0], source);
  simt::cp_async_commit();
  for (int s = 0; s < stages; ++s) {
    if (s + 1 < stages) {
      simt::cp_async4(&buffer[(s + 1) % 2], source + s + 1);
      simt::cp_async_commit();
      simt::cp_async_wait<1>();
    } else {
      simt::cp_async_wait<0>();
    }
    out[s] = buffer[s % 2];
  }
}

__global__ void round_tf32_kernel(const float* x, std::uint32_t* r, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) r[i] = simt::to_tf32(x[i]);
}

void mma_once(MmaKind kind, const std::uint32_t* a, const std::uint32_t* b, const float* c,
              float* d) {
  if (kind == MmaKind::tf32) run(mma_once_kernel<0>, 1, 32, 0, a, b, c, d);
  else if (kind == MmaKind::bf16) run(mma_once_kernel<1>, 1, 32, 0, a, b, c, d);
  else run(mma_once_kernel<2>, 1, 32, 0, a, b, c, d);
}

void ldmatrix_once(int count, bool transposed, const std::uint16_t* source, std::uint32_t* r) {
  if (count == 1)
    transposed ? run(ldmatrix_once_kernel<1, true>, 1, 32, 0, source, r)
               : run(ldmatrix_once_kernel<1, false>, 1, 32, 0, source, r);
  else if (count == 2)
    transposed ? run(ldmatrix_once_kernel<2, true>, 1, 32, 0, source, r)
               : run(ldmatrix_once_kernel<2, false>, 1, 32, 0, source, r);
  else
    transposed ? run(ldmatrix_once_kernel<4, true>, 1, 32, 0, source, r)
               : run(ldmatrix_once_kernel<4, false>, 1, 32, 0, source, r);
}

void cp_async_once(int size, const unsigned char* source, unsigned char* destination) {
  run(cp_async_once_kernel, 1, 64, 0, size, source, destination);
}
void cp_async_stages(int stages, const float* source, float* out) {
  run(cp_async_stages_kernel, 1, 1, 0, stages, source, out);
}
void round_tf32(const float* x, std::uint32_t* r, int n) {
  run(round_tf32_kernel, (n + 31) / 32, 32, 0, x, r, n);
}

}  // namespace braid::simt_tests
