#include "warp_kernels.hpp"

#include "simt/run_kernel.hpp"

namespace braid::simt_tests {

template <MmaKind Kind>
__global__ void mma_once_kernel(const std::uint32_t* a, const std::uint32_t* b, const float* c,
                                float* d) {
  const unsigned lane = threadIdx.x;
  std::uint32_t ra[4], rb[2];
  float rc[4], rd[4];
  for (int i = 0; i < 4; ++i) ra[i] = a[4 * lane + i];
  for (int i = 0; i < 2; ++i) rb[i] = b[2 * lane + i];
  for (int i = 0; i < 4; ++i) rc[i] = c[4 * lane + i];
  if constexpr (Kind == MmaKind::tf32) simt::mma_m16n8k8_tf32(rd, ra, rb, rc);
  else if constexpr (Kind == MmaKind::bf16) simt::mma_m16n8k16_bf16(rd, ra, rb, rc);
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
  if constexpr (Count == 1)
    Transposed ? simt::ldmatrix_x1_trans(got, row) : simt::ldmatrix_x1(got, row);
  else if constexpr (Count == 2)
    Transposed ? simt::ldmatrix_x2_trans(got, row) : simt::ldmatrix_x2(got, row);
  else Transposed ? simt::ldmatrix_x4_trans(got, row) : simt::ldmatrix_x4(got, row);
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
  const auto kernel = kind == MmaKind::tf32   ? mma_once_kernel<MmaKind::tf32>
                      : kind == MmaKind::bf16 ? mma_once_kernel<MmaKind::bf16>
                                              : mma_once_kernel<MmaKind::fp16>;
  run(kernel, 1, 32, 0, a, b, c, d);
}

void ldmatrix_once(int count, bool transposed, const std::uint16_t* source, std::uint32_t* r) {
  const auto kernel =
      count == 1   ? transposed ? ldmatrix_once_kernel<1, true> : ldmatrix_once_kernel<1, false>
      : count == 2 ? transposed ? ldmatrix_once_kernel<2, true> : ldmatrix_once_kernel<2, false>
      : transposed ? ldmatrix_once_kernel<4, true>
                   : ldmatrix_once_kernel<4, false>;
  run(kernel, 1, 32, 0, source, r);
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

__global__ void votes_kernel(std::uint32_t* out) {
  const bool odd = (threadIdx.x & 1) != 0;
  const std::uint32_t got[8] = {
      __ballot_sync(0xffffffffu, odd),
      static_cast<std::uint32_t>(__any_sync(0xffffffffu, threadIdx.x == 5)),
      static_cast<std::uint32_t>(__all_sync(0xffffffffu, threadIdx.x < 32)),
      static_cast<std::uint32_t>(__all_sync(0xffffffffu, odd)),
      __match_any_sync(0xffffffffu, static_cast<int>(threadIdx.x % 4)),
      static_cast<std::uint32_t>(__syncthreads_count(odd)),
      __syncthreads_and(threadIdx.x < 32) != 0,
      __syncthreads_or(threadIdx.x == 99) != 0};
  if (threadIdx.x == 2)
    for (int i = 0; i < 8; ++i) out[i] = got[i];
}

__global__ void shuffles_kernel(int* out) {
  const int lane = static_cast<int>(threadIdx.x), v = 100 + lane;
  out[lane] = __shfl_sync(0xffffffffu, v, 3);
  out[32 + lane] = __shfl_up_sync(0xffffffffu, v, 2);
  out[64 + lane] = __shfl_down_sync(0xffffffffu, v, 4, 16);
  out[96 + lane] = __shfl_xor_sync(0xffffffffu, v, 8);
  out[128 + lane] = __shfl_sync(0xffffffffu, v, 9, 8);
}

__global__ void atomics_kernel(unsigned* out) {
  const unsigned t = threadIdx.x;
  atomicAdd(out + 0, 1u);
  atomicSub(out + 1, 1u);
  atomicMax(out + 2, t);
  atomicMin(out + 3, t);
  atomicAnd(out + 4, ~1u);
  atomicOr(out + 5, 1u << (t % 8));
  atomicXor(out + 6, 1u);
  atomicInc(out + 7, 40u);
  atomicDec(out + 8, 40u);
  atomicCAS(out + 9, 5u, 77u);
}

__global__ void half_atomics_kernel(simt::half_t* sum) {
#if SIMT_EMULATED || __CUDA_ARCH__ >= 700
  atomicAdd(sum, simt::half_t(0.5f));
#endif
}

void votes(std::uint32_t* out) { run(votes_kernel, 1, 32, 0, out); }
void shuffles(int* out) { run(shuffles_kernel, 1, 32, 0, out); }
void atomics(unsigned* out) { run(atomics_kernel, 2, 32, 0, out); }
void half_atomics(void* sum) {
  run(half_atomics_kernel, 2, 32, 0, static_cast<simt::half_t*>(sum));
}

}  // namespace braid::simt_tests
