// Kernels with one deliberate mistake each; twin_kernels.cu has them without it. The lines that a
// report must name carry the mark `here`.
#include <string>

#include "run_kernel.hpp"
#include "wrong_kernels.hpp"

namespace braid::simt_tests::wrong {

__global__ void shared_bounds(float* out, int n) {
  SIMT_SHARED(float, s, [64]);
  SIMT_SHARED(float, u, [64]);
  s[threadIdx.x] = 1;
  u[threadIdx.x] = 2;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x] + (&u[0])[threadIdx.x + n];  // here: shared_bounds
}

__global__ void global_bounds(float* out, int n) {
  out[threadIdx.x + n] = 1;  // here: global_bounds
}

__global__ void missing_barrier(float* out) {
  SIMT_SHARED(float, s, [64]);
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);  // here: missing_barrier
  out[threadIdx.x] = s[63 - threadIdx.x];            // here: missing_barrier
}

__global__ void missing_loop_barrier(float* out) {
  SIMT_SHARED(float, s, [64]);
  float a = 0;
  for (int i = 0; i < 4; ++i) {
    s[threadIdx.x] = static_cast<float>(i);  // here: missing_loop_barrier
    __syncthreads();
    a += s[(threadIdx.x + 33) % 64];  // here: missing_loop_barrier
  }
  out[threadIdx.x] = a;
}

__global__ void missing_warp_barrier(float* out) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 0;
  __syncwarp();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);  // here: missing_warp_barrier
  out[threadIdx.x] = s[31 - threadIdx.x];            // here: missing_warp_barrier
}

__global__ void two_barriers(float* out) {
  if (threadIdx.x < 32) {
    __syncthreads();  // here: two_barriers
  } else {
    out[threadIdx.x] = 1;
    __syncthreads();  // here: two_barriers
  }
  out[threadIdx.x] = 2;
}

__global__ void barrier_of_some(float* out) {
  if (threadIdx.x < 40) __syncthreads();  // here: barrier_of_some
  out[threadIdx.x] = 2;
}

__global__ void shuffle_of_half(float* out) {
  float v = static_cast<float>(threadIdx.x);
  if (threadIdx.x & 1) v += __shfl_xor_sync(0xffffffffu, v, 1);  // here: shuffle_of_half
  out[threadIdx.x] = v;
}

__global__ void foreign_mask(float* out) {
  float v = 1;
  if (threadIdx.x < 16) v += __shfl_down_sync(0xff00u, v, 8);  // here: foreign_mask
  out[threadIdx.x] = v;
}

__global__ void crossed_masks(float* out) {
  if (threadIdx.x == 0) __syncwarp(0x3u);  // here: crossed_masks
  if (threadIdx.x == 1) __syncwarp(0x7u);  // here: crossed_masks
  out[threadIdx.x] = 1;
  if (threadIdx.x == 2) __syncwarp(0x7u);  // here: crossed_masks
}

__global__ void foreign_source(float* out) {
  float v = 1;
  if (threadIdx.x < 16) v = __shfl_sync(0xffffu, v, 20);  // here: foreign_source
  out[threadIdx.x] = v;
}

__global__ void uninitialised_shared(float* out) {
  SIMT_SHARED(float, s, [64]);
  if (threadIdx.x != 0) s[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];  // here: uninitialised_shared
}

__global__ void missing_atomic(float* out) {
  out[threadIdx.x & 7] += 1;  // here: missing_atomic
}

__global__ void two_blocks(float* out) {
  if (threadIdx.x == 0) out[blockIdx.x / 2] = 1;  // here: two_blocks
}

__global__ void host_pointer(const float* host, float* out) {
  out[threadIdx.x] = host[threadIdx.x];  // here: host_pointer
}

__global__ void misaligned_vector(const float* in, float* out) {
  simt::store4(out, simt::load4(in + 1));  // here: misaligned_vector
}

// Two stages; the wait leaves the stage that is read next under way.
__global__ void weak_wait(const float* in, float* out) {
  SIMT_SHARED(float, as, [2][64]);
  const int t = static_cast<int>(threadIdx.x);
  simt::cp_async4(&as[0][t], in + t);
  simt::cp_async_commit();
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (i < 3) simt::cp_async4(&as[(i + 1) % 2][t], in + t);
    simt::cp_async_commit();
    simt::cp_async_wait<2>();
    __syncthreads();
    sum += as[i % 2][63 - t];  // here: weak_wait
    __syncthreads();
  }
  simt::cp_async_wait_all();
  out[t] = sum;
}

__global__ void no_wait(const float* in, float* out) {
  SIMT_SHARED(float, s, [64]);
  simt::cp_async4(&s[threadIdx.x], in + threadIdx.x);  // here: no_wait
  simt::cp_async_commit();
  out[threadIdx.x] = 1;
}

__global__ void missing_fence(const float* in, float* partial, unsigned* counter, float* out) {
  SIMT_SHARED(unsigned, last, [1]);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];  // here: missing_fence
    last[0] = atomicAdd(counter, 1u) == gridDim.x - 1 ? 1 : 0;
  }
  __syncthreads();
  if (last[0] == 0 || threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];  // here: missing_fence
  *out = sum;
  *counter = 0;
}

// The last block reads plainly what all have updated.
__global__ void missing_fence_of_atomics(float* sum, unsigned* counter) {
  if (threadIdx.x != 0) return;
  atomicAdd(sum, 1.0f);  // here: missing_fence_of_atomics
  if (atomicAdd(counter, 1u) != gridDim.x - 1) return;
  sum[1] = 2 * sum[0];  // here: missing_fence_of_atomics
}

__global__ void last_thread(float* out) {
  SIMT_SHARED(unsigned, s, [2]);
  if (threadIdx.x < 2) s[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&s[0], 1u);  // here: last_thread
  if (atomicAdd(&s[1], 1u) != blockDim.x - 1) return;
  out[0] = static_cast<float>(s[0]);  // here: last_thread
}

__global__ void read_after_atomic(float* out) {
  SIMT_SHARED(unsigned, s, [1]);
  if (threadIdx.x == 0) s[0] = 0;
  __syncthreads();
  atomicAdd(&s[0], 1u);                                                  // here: read_after_atomic
  if (threadIdx.x == blockDim.x - 1) out[0] = static_cast<float>(s[0]);  // here: read_after_atomic
}

__global__ void uninitialised_global(const float* fresh, float* out) {
  out[threadIdx.x] = 2 * fresh[threadIdx.x];  // here: uninitialised_global
}

__global__ void spin_on_flag(volatile float* flag) {
  if (threadIdx.x == 1) flag[0] = 1;
  if (threadIdx.x == 0)
    while (flag[2] == 0) {  // here: spin_on_flag
    }
}

__global__ void spin_on_lock(unsigned* lock, float* out) {
  SIMT_SHARED(float, s, [1]);
  while (atomicCAS(lock, 0u, 1u) != 0u) {  // here: spin_on_lock
  }
  s[0] = 1;
  out[0] = s[0];
  __syncthreads();
  atomicExch(lock, 0u);
}

__global__ void too_much_shared(float* out) {
  SIMT_SHARED(float, big, [60000]);  // here: too_much_shared
  big[threadIdx.x] = 1;
  out[threadIdx.x] = big[threadIdx.x];
}

__global__ void local_of_another(float* out) {
  SIMT_SHARED(const float*, address, [1]);
  float mine[4] = {1, 2, 3, static_cast<float>(threadIdx.x)};
  if (threadIdx.x == 0) address[0] = mine;
  __syncthreads();
  out[threadIdx.x] = address[0][threadIdx.x & 3];  // here: local_of_another
  __syncthreads();
  out[threadIdx.x] += mine[threadIdx.x & 3];
}

__global__ void spin_on_vote(volatile float* flag) {
  while (__any_sync(~0u, flag[0] == 0)) {  // here: spin_on_vote
  }
}

__global__ void spin_on_barrier(int wanted) {
  int turn = 0;
  while (__syncthreads_or(turn != wanted)) turn = turn & 1;  // here: spin_on_barrier
}

__global__ void spin_on_three(volatile float* flag) {
  while (flag[0] + flag[1] + flag[2] < 3) {  // here: spin_on_three
  }
}

__global__ void spin_with_counter(volatile float* flag) {
  if (threadIdx.x != 0) return;
  while (flag[0] == 0) flag[9] = flag[9] + 1;  // here: spin_with_counter
}

__global__ void memset_past(float* out, int n) {
  if (threadIdx.x == 0) memset(out, 0, 4 * n);  // here: memset_past
}

__global__ void memcpy_unset(float* out) {
  SIMT_SHARED(float, s, [64]);
  if (threadIdx.x == 0) memset(s, 0, sizeof s - 4);
  __syncthreads();
  if (threadIdx.x == 1) std::memcpy(out, s, sizeof s);  // here: memcpy_unset
}

__device__ int variable;
__global__ void device_variable(float* out) {
  if (threadIdx.x == 0) variable = 1;  // here: device_variable
  out[threadIdx.x] = 1;
}

__global__ void matrix_in_global(const float* in, float* out) {
  std::uint32_t r[1];
  simt::ldmatrix_x1(r, in + 4 * (threadIdx.x & 7));  // here: matrix_in_global
  out[threadIdx.x] = static_cast<float>(r[0] & 1);
}

__global__ void async_from_shared(float* out) {
  SIMT_SHARED(float, a, [64]);
  SIMT_SHARED(float, b, [64]);
  a[threadIdx.x] = 1;
  __syncthreads();
  simt::cp_async4(&b[threadIdx.x], &a[threadIdx.x]);  // here: async_from_shared
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

__global__ void async_source(float* source, float* out) {
  SIMT_SHARED(float, s, [64]);
  source[threadIdx.x] = 1;
  simt::cp_async4(&s[threadIdx.x], source + threadIdx.x);  // here: async_source
  simt::cp_async_commit();
  source[threadIdx.x] = 9;
  simt::cp_async_wait<0>();
  out[threadIdx.x] = s[threadIdx.x];
}

}  // namespace braid::simt_tests::wrong

namespace braid::simt_tests {

// Instrumented copies of functions that reports are made with; the linker may take these for the
// whole program.
std::string text_of_the_host(const char* a, char b) {
  return std::string(a).append(2, b).insert(0, "+").substr(1);
}

void wrong_shared_bounds(const Buffers& b) { run(wrong::shared_bounds, 1, 64, 0, b.out, 1); }
void wrong_global_bounds(const Buffers& b) { run(wrong::global_bounds, 1, 64, 0, b.out, 60); }
void wrong_missing_barrier(const Buffers& b) { run(wrong::missing_barrier, 1, 64, 0, b.out); }
void wrong_missing_loop_barrier(const Buffers& b) {
  run(wrong::missing_loop_barrier, 1, 64, 0, b.out);
}
void wrong_missing_warp_barrier(const Buffers& b) {
  run(wrong::missing_warp_barrier, 1, 32, 0, b.out);
}
void wrong_two_barriers(const Buffers& b) { run(wrong::two_barriers, 1, 64, 0, b.out); }
void wrong_barrier_of_some(const Buffers& b) { run(wrong::barrier_of_some, 1, 64, 0, b.out); }
void wrong_shuffle_of_half(const Buffers& b) { run(wrong::shuffle_of_half, 1, 64, 0, b.out); }
void wrong_foreign_mask(const Buffers& b) { run(wrong::foreign_mask, 1, 64, 0, b.out); }
void wrong_crossed_masks(const Buffers& b) { run(wrong::crossed_masks, 1, 32, 0, b.out); }
void wrong_foreign_source(const Buffers& b) { run(wrong::foreign_source, 1, 32, 0, b.out); }
void wrong_uninitialised_shared(const Buffers& b) {
  run(wrong::uninitialised_shared, 1, 64, 0, b.out);
}
void wrong_missing_atomic(const Buffers& b) { run(wrong::missing_atomic, 1, 64, 0, b.out); }
void wrong_two_blocks(const Buffers& b) { run(wrong::two_blocks, 4, 32, 0, b.out); }
void wrong_host_pointer(const Buffers& b) { run(wrong::host_pointer, 1, 64, 0, b.host, b.out); }
void wrong_misaligned_vector(const Buffers& b) {
  run(wrong::misaligned_vector, 1, 1, 0, b.in, b.out);
}
void wrong_weak_wait(const Buffers& b) { run(wrong::weak_wait, 1, 64, 0, b.in, b.out); }
void wrong_no_wait(const Buffers& b) { run(wrong::no_wait, 1, 64, 0, b.in, b.out); }
void wrong_missing_fence(const Buffers& b) {
  run(wrong::missing_fence, 16, 32, 0, b.in, b.matrices, b.counter, b.out);
}
void wrong_missing_fence_of_atomics(const Buffers& b) {
  run(wrong::missing_fence_of_atomics, 8, 32, 0, b.out, b.counter);
}
void wrong_last_thread(const Buffers& b) { run(wrong::last_thread, 1, 64, 0, b.out); }
void wrong_read_after_atomic(const Buffers& b) { run(wrong::read_after_atomic, 1, 64, 0, b.out); }
void wrong_uninitialised_global(const Buffers& b) {
  run(wrong::uninitialised_global, 1, 64, 0, b.matrices, b.out);
}
void wrong_spin_on_flag(const Buffers& b) { run(wrong::spin_on_flag, 1, 64, 0, b.out); }
void wrong_spin_on_lock(const Buffers& b) { run(wrong::spin_on_lock, 1, 64, 0, b.counter, b.out); }
void wrong_spin_on_vote(const Buffers& b) { run(wrong::spin_on_vote, 1, 32, 0, b.out); }
void wrong_spin_on_barrier(const Buffers&) { run(wrong::spin_on_barrier, 1, 64, 0, 5); }
void wrong_spin_on_three(const Buffers& b) { run(wrong::spin_on_three, 1, 32, 0, b.out); }
void wrong_spin_with_counter(const Buffers& b) { run(wrong::spin_with_counter, 1, 32, 0, b.out); }
void wrong_memset_past(const Buffers& b) { run(wrong::memset_past, 1, 64, 0, b.out, 65); }
void wrong_memcpy_unset(const Buffers& b) { run(wrong::memcpy_unset, 1, 64, 0, b.out); }
void wrong_device_variable(const Buffers& b) { run(wrong::device_variable, 1, 64, 0, b.out); }
void wrong_matrix_in_global(const Buffers& b) {
  run(wrong::matrix_in_global, 1, 32, 0, b.in, b.out);
}
void wrong_async_from_shared(const Buffers& b) { run(wrong::async_from_shared, 1, 64, 0, b.out); }
void wrong_async_source(const Buffers& b) { run(wrong::async_source, 1, 64, 0, b.matrices, b.out); }
void wrong_too_much_shared(const Buffers& b) { run(wrong::too_much_shared, 1, 64, 0, b.out); }
void wrong_local_of_another(const Buffers& b) { run(wrong::local_of_another, 1, 64, 0, b.out); }

}  // namespace braid::simt_tests
