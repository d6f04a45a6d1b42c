#include "edge_kernels.hpp"

#include "run_kernel.hpp"

namespace braid::simt_tests {

__global__ void half_warps_kernel(float* out) {
  SIMT_SHARED(float, s, [32]);
  const unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u, base = threadIdx.x & 16;
  s[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncwarp(mask);
  const float other = __shfl_xor_sync(mask, static_cast<float>(threadIdx.x), 1);
  out[threadIdx.x] = s[base + 15 - (threadIdx.x & 15)] + other;
}

__global__ void warp_broadcast_kernel(float* out) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 1;
  __syncwarp();
  const float a = s[0] + s[1];
  __syncwarp();
  if (threadIdx.x < 2) s[threadIdx.x] = a;
  __syncwarp();
  out[threadIdx.x] = s[0];
}

__global__ void warp_same_word_kernel(float* out) {
  SIMT_SHARED(float, s, [2]);
  s[threadIdx.x & 1] = static_cast<float>(threadIdx.x);  // here: warp_same_word
  __syncwarp();
  out[threadIdx.x] = s[0];
}

__global__ void warp_read_then_write_kernel(float* out) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 1;
  __syncwarp();
  const float a = s[0] + s[1];              // here: warp_read_then_write
  if (threadIdx.x < 2) s[threadIdx.x] = a;  // here: warp_read_then_write
  __syncwarp();
  out[threadIdx.x] = s[0];
}

__global__ void early_return_kernel(float* out, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();  // here: early_return
  out[threadIdx.x] = 1;
}

__global__ void short_warp_kernel(float* out) {
  float v = 1;
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_down_sync(0xffffffffu, v, d);
    const unsigned lane = threadIdx.x & 31, lanes = threadIdx.x < 32 ? 32 : 8;
    if (lane + static_cast<unsigned>(d) < lanes) v += other;
  }
  if ((threadIdx.x & 31) == 0) out[threadIdx.x / 32] = v;
}

__global__ void deep_locals_kernel(float* out) {
  volatile float big[256 * 1024];
  big[threadIdx.x] = 1;
  big[256 * 1024 - 1] = 2;
  out[threadIdx.x] = big[threadIdx.x];
}

__global__ void throwing_kernel([[maybe_unused]] int* out) {
#if SIMT_EMULATED
  if (threadIdx.x == 3) host_function_that_throws();
#endif
  out[threadIdx.x] = 1;
}

__global__ void bytes_of_words_kernel(bool* flags, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) flags[i] = i % 3 == 0;
}

__global__ void fence_by_all_kernel(const float* in, float* partial, unsigned* counter, float* out,
                                    bool fence) {
  SIMT_SHARED(unsigned, last, [1]);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[i] = 2 * in[i % 64];
  if (fence) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last[0] = atomicAdd(counter, 1u) == gridDim.x - 1 ? 1 : 0;
  __syncthreads();
  if (last[0] == 0) return;
  float sum = 0;
  for (unsigned k = threadIdx.x; k < gridDim.x * blockDim.x; k += blockDim.x) sum += partial[k];
  atomicAdd(out, sum);
}

__global__ void tracing_kernel(int* out) {
  out[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (threadIdx.x == 33) simt::trace("value %d of %s", out[threadIdx.x], "me");
}

__constant__ float kWeights[4] = {1, 2, 4, 8};

__global__ void local_arrays_kernel(float* out, int n) {
  float mine[8];
  for (int i = 0; i < 8; ++i) mine[i] = static_cast<float>(i);
  out[threadIdx.x] = mine[(threadIdx.x + static_cast<unsigned>(n)) % 8] + kWeights[threadIdx.x % 4];
}

__global__ void dynamic_shared_kernel(float* out, int n) {
  SIMT_DYN_SHARED(float, buffer);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x))
    buffer[i] = static_cast<float>(i);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x))
    out[i] = buffer[n - 1 - i];
}

__global__ void kernel_id_kernel(std::uint32_t* out) {
  const std::uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const std::uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z),
                      threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = 1000 * block + thread;
}

void half_warps(float* out) { run(half_warps_kernel, 1, 32, 0, out); }
void warp_broadcast(float* out) { run(warp_broadcast_kernel, 1, 32, 0, out); }
void warp_same_word(float* out) { run(warp_same_word_kernel, 1, 32, 0, out); }
void warp_read_then_write(float* out) { run(warp_read_then_write_kernel, 1, 32, 0, out); }
void early_return(float* out, int n) { run(early_return_kernel, 1, 64, 0, out, n); }
void short_warp(float* out) { run(short_warp_kernel, 1, 40, 0, out); }
void deep_locals(float* out) { run(deep_locals_kernel, 1, 32, 0, out); }
void throwing(int* out) { run(throwing_kernel, 1, 32, 0, out); }
void bytes_of_words(bool* flags, int n) {
  run(bytes_of_words_kernel, (n + 49) / 50, 50, 0, flags, n);
}
void fence_by_all(const float* in, float* partial, unsigned* counter, float* out, bool fence) {
  run(fence_by_all_kernel, 8, 64, 0, in, partial, counter, out, fence);
}
void tracing(int* out) { run(tracing_kernel, 1, 64, 0, out); }
void local_arrays(float* out, int n) { run(local_arrays_kernel, 1, 64, 0, out, n); }
void dynamic_shared(float* out, int n) {
  run(dynamic_shared_kernel, 1, 64, static_cast<std::size_t>(n) * sizeof(float), out, n);
}
void kernel_id(std::uint32_t* out) { run(kernel_id_kernel, dim3(3, 2, 2), dim3(5, 2, 3), 0, out); }

// Legal: each block hands over to the next, and the last reads what all wrote.
__global__ void chain_kernel(float* data, unsigned* flags, float* sum) {
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

// Legal: lane 2 overwrites byte 0 behind a barrier with its reader; the reader of byte 1 has passed
// more barriers by then.
__global__ void bytes_read_kernel(unsigned char* out) {
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

__global__ void divide_kernel(int* out, int by) {
  out[threadIdx.x] = 7 / by;  // here: divide
}
void divide(int* out, int by) { run(divide_kernel, 1, 32, 0, out, by); }

void chain_of_blocks(float* data, unsigned* flags, float* sum, int blocks) {
  run(chain_kernel, blocks, 32, 0, data, flags, sum);
}
void bytes_read_at_two_times(unsigned char* out) { run(bytes_read_kernel, 1, 32, 0, out); }

}  // namespace braid::simt_tests
