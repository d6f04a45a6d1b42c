#include "kernels.hpp"

namespace braid::simt_tests {

__global__ void half_warps(float* out) {
  SIMT_SHARED(float, s, [32]);
  const unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u, base = threadIdx.x & 16;
  s[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncwarp(mask);
  const float other = __shfl_xor_sync(mask, static_cast<float>(threadIdx.x), 1);
  out[threadIdx.x] = s[base + 15 - (threadIdx.x & 15)] + other;
}

__global__ void warp_broadcast(float* out) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 1;
  __syncwarp();
  const float a = s[0] + s[1];
  __syncwarp();
  if (threadIdx.x < 2) s[threadIdx.x] = a;
  __syncwarp();
  out[threadIdx.x] = s[0];
}

__global__ void warp_same_word(float* out) {
  SIMT_SHARED(float, s, [2]);
  s[threadIdx.x & 1] = static_cast<float>(threadIdx.x);  // here: warp_same_word
  __syncwarp();
  out[threadIdx.x] = s[0];
}

__global__ void warp_read_then_write(float* out) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 1;
  __syncwarp();
  const float a = s[0] + s[1];              // here: warp_read_then_write
  if (threadIdx.x < 2) s[threadIdx.x] = a;  // here: warp_read_then_write
  __syncwarp();
  out[threadIdx.x] = s[0];
}

__global__ void early_return(float* out, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();  // here: early_return
  out[threadIdx.x] = 1;
}

__global__ void short_warp(float* out) {
  float v = 1;
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_down_sync(0xffffffffu, v, d);
    const unsigned lane = threadIdx.x & 31, lanes = threadIdx.x < 32 ? 32 : 8;
    if (lane + static_cast<unsigned>(d) < lanes) v += other;
  }
  if ((threadIdx.x & 31) == 0) out[threadIdx.x / 32] = v;
}

__global__ void deep_locals(float* out) {
  volatile float big[256 * 1024];
  big[threadIdx.x] = 1;
  big[256 * 1024 - 1] = 2;
  out[threadIdx.x] = big[threadIdx.x];
}

__global__ void throwing([[maybe_unused]] int* out) {
#if SIMT_EMULATED
  if (threadIdx.x == 3) host_function_that_throws();
#endif
  out[threadIdx.x] = 1;
}

__global__ void bytes_of_words(bool* flags, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) flags[i] = i % 3 == 0;
}

__global__ void fence_by_all(const float* in, float* partial, unsigned* counter, float* out,
                             bool fence) {
  SIMT_SHARED(unsigned, last, [1]);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[i] = 2 * __ldg(in + i % 64);
  if (fence) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last[0] = atomicAdd(counter, 1u) == gridDim.x - 1 ? 1 : 0;
  __syncthreads();
  if (last[0] == 0) return;
  if (threadIdx.x == 0) *counter = 0;
  float sum = 0;
  for (unsigned k = threadIdx.x; k < gridDim.x * blockDim.x; k += blockDim.x) sum += partial[k];
  atomicAdd(out, sum);
}

__global__ void tracing(int* out) {
  out[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (threadIdx.x == 33) simt::trace("value %d of %s", out[threadIdx.x], "me");
}

__constant__ float kWeights[4] = {1, 2, 4, 8};

__global__ void local_arrays(float* out, int n) {
  float mine[8];
  for (int i = 0; i < 8; ++i) mine[i] = static_cast<float>(i);
  out[threadIdx.x] =
      mine[(threadIdx.x + static_cast<unsigned>(n)) % 8] + kWeights[threadIdx.x % 4] + rsqrtf(4.0f);
}

__global__ void dynamic_shared(float* out, int n) {
  SIMT_DYN_SHARED(float, buffer);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x))
    buffer[i] = static_cast<float>(i);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x))
    out[i] = buffer[n - 1 - i];
}

__global__ void kernel_id(std::uint32_t* out) {
  const std::uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const std::uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z),
                      threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = 1000 * block + thread;
}

// Legal: each block signals the next with a flag, and the last block reads what all have written.
__global__ void chain_of_blocks(float* data, unsigned* flags, float* sum) {
  if (threadIdx.x != 0) return;
  const unsigned b = blockIdx.x;
  if (b > 0) {
    while (atomicAdd(&flags[b - 1], 0u) == 0) {}
    __threadfence();
  }
  data[b] = 1;
  __threadfence();
  atomicExch(&flags[b], 1u);
  if (b != gridDim.x - 1) return;
  float total = 0;
  for (unsigned i = 0; i <= b; ++i) total += data[i];
  *sum = total;
}

// Legal: lane 2 overwrites byte 0 after a barrier with its reader. By then the reader of byte 1 has
// passed more barriers.
__global__ void bytes_read(unsigned char* out) {
  SIMT_SHARED(unsigned char, s, [4]);
  const unsigned lane = threadIdx.x;
  if (lane < 4) s[lane] = static_cast<unsigned char>(lane);
  __syncwarp();
  unsigned char v = 0;
  if (lane == 1 || lane == 3)
    for (int i = 0; i < 5; ++i) __syncwarp(0xau);
  if (lane == 1) v = s[1];
  if (lane == 0) v = s[0];
  if (lane == 0 || lane == 2) __syncwarp(0x5u);
  if (lane == 2 || lane == 4)
    for (int i = 0; i < 40; ++i) __syncwarp(0x14u);
  if (lane == 2) s[0] = 9;
  out[lane] = v;
}

__global__ void divide(int* out, int by) {
  out[threadIdx.x] = 7 / by;  // here: divide
}

template <int Columns> __global__ void transpose(const float* in, float* out) {  // 32x8 threads
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

__global__ void transpose_naive(const float* in, float* out) {
  for (int j = 0; j < 32; j += 8) {
    const float v = in[(threadIdx.y + j) * 32 + threadIdx.x];  // here: naive_in
    out[threadIdx.x * 32 + threadIdx.y + j] = v;               // here: naive_out
  }
}

__global__ void copy_vectors(const float* in, float* out) {
  const float4 v = simt::load4(in + 4 * threadIdx.x);  // here: load4
  simt::store4(out + 4 * threadIdx.x, v);              // here: store4
}

__global__ void copy_shared_vectors(float* out) {
  SIMT_SHARED(float, s, [128]);
  simt::store4(&s[4 * threadIdx.x], make_float4(1, 2, 3, 4));  // here: shared_store4
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void broadcast(float* out) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 1;
  __syncwarp();
  const float v = s[5];  // here: broadcast
  out[threadIdx.x] = v;
}

template __global__ void transpose<32>(const float* in, float* out);
template __global__ void transpose<33>(const float* in, float* out);

__global__ void fill_kernel(float* p, float value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = value;
}

__global__ void copy_kernel(const float* from, float* to, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i];
}

__global__ void fill_bytes(unsigned char* p, int n) {
  if (static_cast<int>(threadIdx.x) < n) p[threadIdx.x] = 1;
}
__global__ void copy_bytes(const unsigned char* from, unsigned char* to, int n) {
  if (static_cast<int>(threadIdx.x) < n) to[threadIdx.x] = from[threadIdx.x];
}
__global__ void count(unsigned* sum) { atomicAdd(sum, 1u); }
__global__ void read_count(const unsigned* sum, unsigned* out) {
  if (threadIdx.x == 0) out[0] = sum[0];
}

}  // namespace braid::simt_tests
