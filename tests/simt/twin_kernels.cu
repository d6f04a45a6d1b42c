// The kernels of wrong_kernels.cu without their mistakes: none of them may be reported.
#include "run_kernel.hpp"
#include "wrong_kernels.hpp"

namespace braid::simt_tests::twin {

__global__ void shared_bounds(float* out, int n) {
  SIMT_SHARED(float, s, [64]);
  SIMT_SHARED(float, u, [64]);
  s[threadIdx.x] = 1;
  u[threadIdx.x] = 2;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x] + (&u[0])[(threadIdx.x + n) % 64];
}

__global__ void global_bounds(float* out, int n) {
  if (threadIdx.x + n < 64) out[threadIdx.x + n] = 1;
}

__global__ void missing_barrier(float* out) {
  SIMT_SHARED(float, s, [64]);
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}

__global__ void missing_loop_barrier(float* out) {
  SIMT_SHARED(float, s, [64]);
  float a = 0;
  for (int i = 0; i < 4; ++i) {
    s[threadIdx.x] = static_cast<float>(i);
    __syncthreads();
    a += s[(threadIdx.x + 33) % 64];
    __syncthreads();
  }
  out[threadIdx.x] = a;
}

__global__ void missing_warp_barrier(float* out) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 0;
  __syncwarp();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = s[31 - threadIdx.x];
}

__global__ void two_barriers(float* out) {
  if (threadIdx.x >= 32) out[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = 2;
}

__global__ void barrier_of_some(float* out) {
  __syncthreads();
  if (threadIdx.x < 40) out[threadIdx.x] = 1;
  out[threadIdx.x] = 2;
}

__global__ void shuffle_of_half(float* out) {
  float v = static_cast<float>(threadIdx.x);
  const float other = __shfl_xor_sync(0xffffffffu, v, 1);
  if (threadIdx.x & 1) v += other;
  out[threadIdx.x] = v;
}

__global__ void foreign_mask(float* out) {
  float v = 1;
  if ((threadIdx.x & 31) < 16) v += __shfl_down_sync(0xffffu, v, 8);
  out[threadIdx.x] = v;
}

// Each lane hands over to the next, with masks that overlap.
__global__ void crossed_masks(float* out) {
  SIMT_SHARED(float, s, [32]);
  const unsigned lane = threadIdx.x;
  float v = 1;
  if (lane > 0) {
    __syncwarp(3u << (lane - 1));
    v += s[lane - 1];
  }
  s[lane] = v;
  if (lane < 31) __syncwarp(3u << lane);
  out[lane] = v;
}

// Lanes that have returned are not waited for; the lanes at the edge of a sum over half a warp may
// look outside it.
__global__ void foreign_source(float* out) {
  if (threadIdx.x >= 20) return;
  const unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x & 1);
  __syncwarp();
  float v = 1;
  if (threadIdx.x < 16) {
    v = __shfl_sync(0xffffu, v, 4);
    v += __shfl_down_sync(0xffffu, v, 8);
  }
  if (threadIdx.x < 8) out[threadIdx.x] = v + static_cast<float>(odd);
}

__global__ void uninitialised_shared(float* out) {
  SIMT_SHARED(float, s, [64]);
  s[threadIdx.x] = threadIdx.x != 0 ? 1.0f : 0.0f;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void missing_atomic(float* out) { atomicAdd(out + (threadIdx.x & 7), 1.0f); }

__global__ void two_blocks(float* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = 1;
}

__global__ void host_pointer(const float* device, float* out) {
  out[threadIdx.x] = device[threadIdx.x];
}

__global__ void misaligned_vector(const float* in, float* out) {
  simt::store4(out, simt::load4(in + 4));
}

__global__ void weak_wait(const float* in, float* out) {
  SIMT_SHARED(float, as, [2][64]);
  const int t = static_cast<int>(threadIdx.x);
  simt::cp_async4(&as[0][t], in + t);
  simt::cp_async_commit();
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (i < 3) simt::cp_async4(&as[(i + 1) % 2][t], in + t);
    simt::cp_async_commit();
    simt::cp_async_wait<1>();
    __syncthreads();
    sum += as[i % 2][63 - t];
    __syncthreads();
  }
  simt::cp_async_wait_all();
  out[t] = sum;
}

__global__ void no_wait(const float* in, float* out) {
  SIMT_SHARED(float, s, [64]);
  simt::cp_async4(&s[threadIdx.x], in + threadIdx.x);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void missing_fence(const float* in, float* partial, unsigned* counter, float* out) {
  SIMT_SHARED(unsigned, last, [1]);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    last[0] = atomicAdd(counter, 1u) == gridDim.x - 1 ? 1 : 0;
  }
  __syncthreads();
  if (last[0] == 0 || threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *out = sum;
  *counter = 0;
}

__global__ void missing_fence_of_atomics(float* sum, unsigned* counter) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x % 3 != 1) atomicAdd(sum, 1.0f);
  __threadfence();
  if (atomicAdd(counter, 1u) != gridDim.x - 1) return;
  __threadfence();
  sum[1] = 2 * sum[0];
  *counter = 0;
}

__global__ void last_thread(float* out) {
  SIMT_SHARED(unsigned, s, [3]);
  if (threadIdx.x < 3) s[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&s[0], 1u);
  if (threadIdx.x < 32) {
    atomicAdd(&s[2], 1u);
    __syncwarp();
    out[threadIdx.x] = static_cast<float>(s[2]);
  }
  __syncthreads();
  if (atomicAdd(&s[1], 1u) != blockDim.x - 1) return;
  out[0] = static_cast<float>(s[0]);
  s[1] = 0;
}

__global__ void read_after_atomic(float* out) {
  SIMT_SHARED(unsigned, s, [1]);
  if (threadIdx.x == 0) s[0] = 0;
  __syncthreads();
  atomicAdd(&s[0], 1u);
  __syncthreads();
  if (threadIdx.x == blockDim.x - 1) out[0] = static_cast<float>(s[0]);
}

__global__ void uninitialised_global(float* fresh, float* out) {
  fresh[threadIdx.x] = 3;
  out[threadIdx.x] = fresh[threadIdx.x];
}

__global__ void spin_on_flag(volatile float* flag) {
  if (threadIdx.x == 1) flag[2] = 1;
  __syncthreads();
  if (threadIdx.x == 0)
    while (flag[2] == 0) {}
}

// A lock that one thread takes needs no other to run.
__global__ void spin_on_lock(unsigned* lock, float* out) {
  while (atomicCAS(lock, 0u, 1u) != 0u) {}
  atomicAdd(out, 1.0f);
  atomicExch(lock, 0u);
}

__global__ void too_much_shared(float* out) {
  SIMT_SHARED(float, big, [50000]);
  big[threadIdx.x] = 1;
  out[threadIdx.x] = big[threadIdx.x];
}

__global__ void local_of_another(float* out) {
  SIMT_SHARED(float, value, [4]);
  const float mine[4] = {1, 2, 3, static_cast<float>(threadIdx.x)};
  if (threadIdx.x == 0)
    for (int i = 0; i < 4; ++i) value[i] = mine[i] + 1;
  __syncthreads();
  out[threadIdx.x] = value[threadIdx.x & 3] + mine[threadIdx.x & 3];
}

__global__ void spin_on_vote(volatile float* flag) {
  if (threadIdx.x < 4) flag[threadIdx.x] = 1;
  __syncthreads();
  while (__any_sync(~0u, flag[0] == 0)) {}
}

__global__ void spin_on_barrier(int wanted) {
  int turn = 0;
  while (__syncthreads_or(turn != wanted)) turn = turn + 1;
}

__global__ void spin_on_three(volatile float* flag) {
  if (threadIdx.x < 4) flag[threadIdx.x] = 1;
  __syncthreads();
  while (flag[0] + flag[1] + flag[2] < 3) {}
}

__global__ void spin_with_counter(volatile float* flag) {
  if (threadIdx.x < 4) flag[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x != 0) return;
  while (flag[0] == 0) flag[9] = flag[9] + 1;
}

__global__ void memset_past(float* out, int n) {
  if (threadIdx.x == 0) memset(out, 0, 4 * n);
}

__global__ void memcpy_unset(float* out) {
  SIMT_SHARED(float, s, [64]);
  if (threadIdx.x == 0) memset(s, 0, sizeof s);
  __syncthreads();
  if (threadIdx.x == 1) std::memcpy(out, s, sizeof s);
}

__constant__ int variable = 3;
__global__ void device_variable(float* out) { out[threadIdx.x] = static_cast<float>(variable); }

__global__ void matrix_in_global(const float* in, float* out) {
  std::uint32_t r[1];
  SIMT_SHARED(float, s, [64]);
  s[threadIdx.x] = in[threadIdx.x];
  s[threadIdx.x + 32] = in[threadIdx.x + 32];
  __syncwarp();
  simt::ldmatrix_x1(r, s + 4 * (threadIdx.x & 7));
  out[threadIdx.x] = static_cast<float>(r[0] & 1);
}

__global__ void async_from_shared(const float* in, float* out) {
  SIMT_SHARED(float, a, [64]);
  SIMT_SHARED(float, b, [64]);
  a[threadIdx.x] = 1;
  __syncthreads();
  simt::cp_async4(&b[threadIdx.x], in + threadIdx.x);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

__global__ void async_source(float* source, float* out) {
  SIMT_SHARED(float, s, [64]);
  source[threadIdx.x] = 1;
  simt::cp_async4(&s[threadIdx.x], source + threadIdx.x);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  source[threadIdx.x] = 9;
  out[threadIdx.x] = s[threadIdx.x];
}

}  // namespace braid::simt_tests::twin

namespace braid::simt_tests {

void twin_shared_bounds(const Buffers& b) { run(twin::shared_bounds, 1, 64, 0, b.out, 1); }
void twin_global_bounds(const Buffers& b) { run(twin::global_bounds, 1, 64, 0, b.out, 60); }
void twin_missing_barrier(const Buffers& b) { run(twin::missing_barrier, 1, 64, 0, b.out); }
void twin_missing_loop_barrier(const Buffers& b) {
  run(twin::missing_loop_barrier, 1, 64, 0, b.out);
}
void twin_missing_warp_barrier(const Buffers& b) {
  run(twin::missing_warp_barrier, 1, 32, 0, b.out);
}
void twin_two_barriers(const Buffers& b) { run(twin::two_barriers, 1, 64, 0, b.out); }
void twin_barrier_of_some(const Buffers& b) { run(twin::barrier_of_some, 1, 64, 0, b.out); }
void twin_shuffle_of_half(const Buffers& b) { run(twin::shuffle_of_half, 1, 64, 0, b.out); }
void twin_foreign_mask(const Buffers& b) { run(twin::foreign_mask, 1, 64, 0, b.out); }
void twin_crossed_masks(const Buffers& b) { run(twin::crossed_masks, 1, 32, 0, b.out); }
void twin_foreign_source(const Buffers& b) { run(twin::foreign_source, 1, 32, 0, b.out); }
void twin_uninitialised_shared(const Buffers& b) {
  run(twin::uninitialised_shared, 1, 64, 0, b.out);
}
void twin_missing_atomic(const Buffers& b) { run(twin::missing_atomic, 1, 64, 0, b.out); }
void twin_two_blocks(const Buffers& b) { run(twin::two_blocks, 4, 32, 0, b.out); }
void twin_host_pointer(const Buffers& b) { run(twin::host_pointer, 1, 64, 0, b.in, b.out); }
void twin_misaligned_vector(const Buffers& b) {
  run(twin::misaligned_vector, 1, 1, 0, b.in, b.out);
}
void twin_weak_wait(const Buffers& b) { run(twin::weak_wait, 1, 64, 0, b.in, b.out); }
void twin_no_wait(const Buffers& b) { run(twin::no_wait, 1, 64, 0, b.in, b.out); }
void twin_missing_fence(const Buffers& b) {
  run(twin::missing_fence, 16, 32, 0, b.in, b.matrices, b.counter, b.out);
}
void twin_missing_fence_of_atomics(const Buffers& b) {
  run(twin::missing_fence_of_atomics, 8, 32, 0, b.out, b.counter);
}
void twin_last_thread(const Buffers& b) { run(twin::last_thread, 1, 64, 0, b.out); }
void twin_read_after_atomic(const Buffers& b) { run(twin::read_after_atomic, 1, 64, 0, b.out); }
void twin_uninitialised_global(const Buffers& b) {
  run(twin::uninitialised_global, 1, 64, 0, b.matrices, b.out);
}
void twin_spin_on_flag(const Buffers& b) { run(twin::spin_on_flag, 1, 64, 0, b.out); }
void twin_spin_on_lock(const Buffers& b) { run(twin::spin_on_lock, 4, 64, 0, b.counter, b.out); }
void twin_spin_on_vote(const Buffers& b) { run(twin::spin_on_vote, 1, 32, 0, b.out); }
void twin_spin_on_barrier(const Buffers&) { run(twin::spin_on_barrier, 1, 64, 0, 5); }
void twin_spin_on_three(const Buffers& b) { run(twin::spin_on_three, 1, 32, 0, b.out); }
void twin_spin_with_counter(const Buffers& b) { run(twin::spin_with_counter, 1, 32, 0, b.out); }
void twin_memset_past(const Buffers& b) { run(twin::memset_past, 1, 64, 0, b.out, 64); }
void twin_memcpy_unset(const Buffers& b) { run(twin::memcpy_unset, 1, 64, 0, b.out); }
void twin_device_variable(const Buffers& b) { run(twin::device_variable, 1, 64, 0, b.out); }
void twin_matrix_in_global(const Buffers& b) { run(twin::matrix_in_global, 1, 32, 0, b.in, b.out); }
void twin_async_from_shared(const Buffers& b) {
  run(twin::async_from_shared, 1, 64, 0, b.in, b.out);
}
void twin_async_source(const Buffers& b) { run(twin::async_source, 1, 64, 0, b.matrices, b.out); }
void twin_too_much_shared(const Buffers& b) { run(twin::too_much_shared, 1, 64, 0, b.out); }
void twin_local_of_another(const Buffers& b) { run(twin::local_of_another, 1, 64, 0, b.out); }

}  // namespace braid::simt_tests
