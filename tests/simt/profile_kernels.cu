#include "profile_kernels.hpp"

#include "run_kernel.hpp"

namespace braid::simt_tests {

template <int Columns>
__global__ void transpose_kernel(const float* in, float* out) {  // 32x8 threads
  SIMT_SHARED(float, tile, [32][Columns]);
  for (int j = 0; j < 32; j += 8) {
    const float v = in[(threadIdx.y + j) * 32 + threadIdx.x];
    tile[threadIdx.y + j][threadIdx.x] = v;  // here: transpose_store
  }
  __syncthreads();
  for (int j = 0; j < 32; j += 8) {
    const float v = tile[threadIdx.x][threadIdx.y + j];  // here: transpose_load
    out[(threadIdx.y + j) * 32 + threadIdx.x] = v;       // here: transpose_out
  }
}

__global__ void transpose_naive_kernel(const float* in, float* out) {
  for (int j = 0; j < 32; j += 8) {
    const float v = in[(threadIdx.y + j) * 32 + threadIdx.x];  // here: naive_in
    out[threadIdx.x * 32 + threadIdx.y + j] = v;               // here: naive_out
  }
}

__global__ void copy_vectors_kernel(const float* in, float* out) {
  const float4 v = simt::load4(in + 4 * threadIdx.x);  // here: load4
  simt::store4(out + 4 * threadIdx.x, v);              // here: store4
}

__global__ void copy_shared_vectors_kernel(float* out) {
  SIMT_SHARED(float, s, [128]);
  simt::store4(&s[4 * threadIdx.x], make_float4(1, 2, 3, 4));  // here: shared_store4
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void broadcast_kernel(float* out) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 1;
  __syncwarp();
  const float v = s[5];  // here: broadcast
  out[threadIdx.x] = v;
}

void transpose_32(const float* in, float* out) {
  run(transpose_kernel<32>, 1, dim3(32, 8), 0, in, out);
}
void transpose_33(const float* in, float* out) {
  run(transpose_kernel<33>, 1, dim3(32, 8), 0, in, out);
}
void transpose_naive(const float* in, float* out) {
  run(transpose_naive_kernel, 1, dim3(32, 8), 0, in, out);
}
void copy_vectors(const float* in, float* out) { run(copy_vectors_kernel, 1, 32, 0, in, out); }
void copy_shared_vectors(float* out) { run(copy_shared_vectors_kernel, 1, 32, 0, out); }
void broadcast(float* out) { run(broadcast_kernel, 1, 32, 0, out); }

}  // namespace braid::simt_tests
