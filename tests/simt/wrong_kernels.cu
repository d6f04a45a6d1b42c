// Kernels with one deliberate mistake each, and without it if `fixed`. The lines that a report must
// name end in `// here: <name>`.
#include "wrong_kernels.hpp"

#include "run_kernel.hpp"

namespace braid::simt_tests::wrong {

__global__ void shared_bounds(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  SIMT_SHARED(float, u, [64]);
  const unsigned t = threadIdx.x, next = fixed ? (t + 1) % 64 : t + 1;
  s[t] = 1;
  u[t] = 2;
  __syncthreads();
  b.out[t] = s[t] + (&u[0])[next];  // here: shared_bounds
}

__global__ void global_bounds(Buffers b, bool fixed) {
  const unsigned i = threadIdx.x + 60;
  if (!fixed || i < 64) b.out[i] = 1;  // here: global_bounds
}

__global__ void missing_barrier(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);  // here: missing_barrier
  if (fixed) __syncthreads();
  b.out[threadIdx.x] = s[63 - threadIdx.x];  // here: missing_barrier
}

__global__ void missing_loop_barrier(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  float a = 0;
  for (int i = 0; i < 4; ++i) {
    s[threadIdx.x] = static_cast<float>(i);  // here: missing_loop_barrier
    __syncthreads();
    a += s[(threadIdx.x + 33) % 64];  // here: missing_loop_barrier
    if (fixed) __syncthreads();
  }
  b.out[threadIdx.x] = a;
}

__global__ void missing_warp_barrier(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [32]);
  s[threadIdx.x] = 0;
  __syncwarp();
  s[threadIdx.x] = static_cast<float>(threadIdx.x);  // here: missing_warp_barrier
  if (fixed) __syncwarp();
  b.out[threadIdx.x] = s[31 - threadIdx.x];  // here: missing_warp_barrier
}

__global__ void two_barriers(Buffers b, bool fixed) {
  if (!fixed && threadIdx.x < 32) {
    __syncthreads();  // here: two_barriers
  } else {
    if (threadIdx.x >= 32) b.out[threadIdx.x] = 1;
    __syncthreads();  // here: two_barriers
  }
  b.out[threadIdx.x] = 2;
}

__global__ void barrier_of_some(Buffers b, bool fixed) {
  if (fixed || threadIdx.x < 40) __syncthreads();  // here: barrier_of_some
  b.out[threadIdx.x] = 2;
}

__global__ void shuffle_of_half(Buffers b, bool fixed) {
  const bool odd = (threadIdx.x & 1) != 0;
  float v = static_cast<float>(threadIdx.x), other = 0;
  if (fixed || odd) other = __shfl_xor_sync(0xffffffffu, v, 1);  // here: shuffle_of_half
  if (odd) v += other;
  b.out[threadIdx.x] = v;
}

__global__ void foreign_mask(Buffers b, bool fixed) {
  float v = 1;
  const unsigned mask = fixed ? 0xffffu : 0xff00u;
  if ((threadIdx.x & 31) < 16) v += __shfl_down_sync(mask, v, 8);  // here: foreign_mask
  b.out[threadIdx.x] = v;
}

// Corrected: each lane passes a value to the next, with masks that overlap.
__global__ void crossed_masks(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [32]);
  const unsigned lane = threadIdx.x;
  if (fixed) {
    float v = 1;
    if (lane > 0) {
      __syncwarp(3u << (lane - 1));
      v += s[lane - 1];
    }
    s[lane] = v;
    if (lane < 31) __syncwarp(3u << lane);
    b.out[lane] = v;
    return;
  }
  if (lane == 0) __syncwarp(0x3u);  // here: crossed_masks
  if (lane == 1) __syncwarp(0x7u);  // here: crossed_masks
  b.out[lane] = 1;
  if (lane == 2) __syncwarp(0x7u);  // here: crossed_masks
}

// Corrected: lanes that have returned are not waited for, and the lanes at the edge of a sum over
// half a warp may read outside it.
__global__ void foreign_source(Buffers b, bool fixed) {
  const unsigned lane = threadIdx.x;
  unsigned odd = 0;
  if (fixed) {
    if (lane >= 20) return;
    odd = __ballot_sync(0xffffffffu, lane & 1);
    __syncwarp();
  }
  float v = 1;
  if (lane < 16) v = __shfl_sync(0xffffu, v, fixed ? 4 : 20);  // here: foreign_source
  if (fixed && lane < 16) v += __shfl_down_sync(0xffffu, v, 8);
  if (!fixed || lane < 8) b.out[lane] = v + static_cast<float>(odd);
}

__global__ void uninitialised_shared(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  if (fixed || threadIdx.x != 0) s[threadIdx.x] = 1;
  __syncthreads();
  b.out[threadIdx.x] = s[threadIdx.x];  // here: uninitialised_shared
}

__global__ void missing_atomic(Buffers b, bool fixed) {
  if (fixed) atomicAdd(b.out + (threadIdx.x & 7), 1.0f);
  else b.out[threadIdx.x & 7] += 1;  // here: missing_atomic
}

__global__ void two_blocks(Buffers b, bool fixed) {
  if (threadIdx.x == 0) b.out[fixed ? blockIdx.x : blockIdx.x / 2] = 1;  // here: two_blocks
}

__global__ void host_pointer(Buffers b, bool fixed) {
  const float* const from = fixed ? b.in : b.host;
  b.out[threadIdx.x] = from[threadIdx.x];  // here: host_pointer
}

__global__ void misaligned_vector(Buffers b, bool fixed) {
  simt::store4(b.out, simt::load4(b.in + (fixed ? 4 : 1)));  // here: misaligned_vector
}

// Two stages. The wrong wait leaves the stage that is read next in flight.
__global__ void weak_wait(Buffers b, bool fixed) {
  SIMT_SHARED(float, as, [2][64]);
  const int t = static_cast<int>(threadIdx.x);
  simt::cp_async4(&as[0][t], b.in + t);
  simt::cp_async_commit();
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (i < 3) simt::cp_async4(&as[(i + 1) % 2][t], b.in + t);
    simt::cp_async_commit();
    if (fixed) simt::cp_async_wait<1>();
    else simt::cp_async_wait<2>();
    __syncthreads();
    sum += as[i % 2][63 - t];  // here: weak_wait
    __syncthreads();
  }
  simt::cp_async_wait_all();
  b.out[t] = sum;
}

__global__ void no_wait(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  simt::cp_async4(&s[threadIdx.x], b.in + threadIdx.x);  // here: no_wait
  simt::cp_async_commit();
  if (fixed) simt::cp_async_wait<0>();
  b.out[threadIdx.x] = fixed ? s[threadIdx.x] : 1.0f;
}

__global__ void missing_fence(Buffers b, bool fixed) {
  SIMT_SHARED(unsigned, last, [1]);
  if (threadIdx.x == 0) {
    b.matrices[blockIdx.x] = b.in[blockIdx.x];  // here: missing_fence
    if (fixed) __threadfence();
    last[0] = atomicAdd(b.counter, 1u) == gridDim.x - 1 ? 1 : 0;
  }
  __syncthreads();
  if (last[0] == 0 || threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += b.matrices[i];  // here: missing_fence
  *b.out = sum;
  *b.counter = 0;
}

// The last block reads without an atomic what all blocks, or most, have updated atomically.
__global__ void missing_fence_of_atomics(Buffers b, bool fixed) {
  if (threadIdx.x != 0) return;
  if (!fixed || blockIdx.x % 3 != 1) atomicAdd(b.out, 1.0f);  // here: missing_fence_of_atomics
  if (fixed) __threadfence();
  if (atomicAdd(b.counter, 1u) != gridDim.x - 1) return;
  if (fixed) __threadfence();
  b.out[1] = 2 * b.out[0];  // here: missing_fence_of_atomics
  *b.counter = 0;
}

__global__ void last_thread(Buffers b, bool fixed) {
  SIMT_SHARED(unsigned, s, [3]);
  if (threadIdx.x < 3) s[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&s[0], 1u);  // here: last_thread
  if (fixed && threadIdx.x < 32) {
    atomicAdd(&s[2], 1u);
    __syncwarp();
    b.out[threadIdx.x] = static_cast<float>(s[2]);
  }
  if (fixed) __syncthreads();
  if (atomicAdd(&s[1], 1u) != blockDim.x - 1) return;
  b.out[0] = static_cast<float>(s[0]);  // here: last_thread
  if (fixed) s[1] = 0;
}

__global__ void read_after_atomic(Buffers b, bool fixed) {
  SIMT_SHARED(unsigned, s, [1]);
  if (threadIdx.x == 0) s[0] = 0;
  __syncthreads();
  atomicAdd(&s[0], 1u);  // here: read_after_atomic
  if (fixed) __syncthreads();
  if (threadIdx.x == blockDim.x - 1)
    b.out[0] = static_cast<float>(s[0]);  // here: read_after_atomic
}

__global__ void uninitialised_global(Buffers b, bool fixed) {
  if (fixed) b.matrices[threadIdx.x] = 3;
  b.out[threadIdx.x] = 2 * b.matrices[threadIdx.x];  // here: uninitialised_global
}

__global__ void spin_on_flag(Buffers b, bool fixed) {
  volatile float* const flag = b.out;
  if (threadIdx.x == 1) flag[fixed ? 2 : 0] = 1;
  if (fixed) __syncthreads();
  if (threadIdx.x == 0)
    while (flag[2] == 0) continue;  // here: spin_on_flag
}

// A lock that only one thread takes does not need any other thread to run.
__global__ void spin_on_lock(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [1]);
  while (atomicCAS(b.counter, 0u, 1u) != 0u) continue;  // here: spin_on_lock
  if (fixed) {
    atomicAdd(b.out, 1.0f);
  } else {
    s[0] = 1;
    b.out[0] = s[0];
    __syncthreads();
  }
  atomicExch(b.counter, 0u);
}

__device__ void write_and_read(float* shared, Buffers b) {
  shared[threadIdx.x] = 1;
  b.out[threadIdx.x] = shared[threadIdx.x];
}

__global__ void too_much_shared(Buffers b, bool fixed) {
  if (fixed) {
    SIMT_SHARED(float, fits, [12288]);
    return write_and_read(fits, b);
  }
  SIMT_SHARED(float, big, [12289]);  // here: too_much_shared
  write_and_read(big, b);
}

// Beside 32 KiB of dynamic memory, for which simt::launch sets no attribute: 48 KiB in all.
__global__ void too_much_beside(Buffers b, bool fixed) {
  SIMT_DYN_SHARED(float, dynamic);
  write_and_read(dynamic, b);
  if (fixed) {
    SIMT_SHARED(float, fits, [4096]);
    return write_and_read(fits, b);
  }
  SIMT_SHARED(float, big, [4097]);  // here: too_much_beside
  write_and_read(big, b);
}

// Beside 64 KiB, with the attribute: arrays have 48 KiB at most.
__global__ void too_many_arrays(Buffers b, bool fixed) {
  if (fixed) {
    SIMT_SHARED(float, fits, [12288]);
    return write_and_read(fits, b);
  }
  SIMT_SHARED(float, big, [12289]);  // here: too_many_arrays
  write_and_read(big, b);
}

// Beside 200 KiB: the device has 227 KiB.
__global__ void more_than_the_device(Buffers b, bool fixed) {
  if (fixed) {
    SIMT_SHARED(float, fits, [6912]);
    return write_and_read(fits, b);
  }
  SIMT_SHARED(float, big, [6913]);  // here: more_than_the_device
  write_and_read(big, b);
}

__global__ void local_of_another(Buffers b, bool fixed) {
  SIMT_SHARED(const float*, address, [1]);
  SIMT_SHARED(float, value, [4]);
  const unsigned t = threadIdx.x;
  float mine[4] = {1, 2, 3, static_cast<float>(t)};
  if (t == 0) {
    address[0] = mine;
    for (int i = 0; i < 4; ++i) value[i] = mine[i] + 1;
  }
  __syncthreads();
  b.out[t] = fixed ? value[t & 3] : address[0][t & 3];  // here: local_of_another
  __syncthreads();
  b.out[t] += mine[t & 3];
}

/// Sets the flags that the kernels below wait for.
__device__ void set_flags(volatile float* flag) {
  if (threadIdx.x < 4) flag[threadIdx.x] = 1;
  __syncthreads();
}

__global__ void spin_on_vote(Buffers b, bool fixed) {
  volatile float* const flag = b.out;
  if (fixed) set_flags(flag);
  while (__any_sync(~0u, flag[0] == 0)) continue;  // here: spin_on_vote
}

__global__ void spin_on_barrier(Buffers, bool fixed) {
  int turn = 0;
  while (__syncthreads_or(turn != 5)) turn = fixed ? turn + 1 : turn & 1;  // here: spin_on_barrier
}

__global__ void spin_on_three(Buffers b, bool fixed) {
  volatile float* const flag = b.out;
  if (fixed) set_flags(flag);
  while (flag[0] + flag[1] + flag[2] < 3) continue;  // here: spin_on_three
}

__global__ void spin_with_counter(Buffers b, bool fixed) {
  volatile float* const flag = b.out;
  if (fixed) set_flags(flag);
  if (threadIdx.x != 0) return;
  while (flag[0] == 0) flag[9] = flag[9] + 1;  // here: spin_with_counter
}

__global__ void memset_past(Buffers b, bool fixed) {
  if (threadIdx.x == 0) memset(b.out, 0, fixed ? 256 : 260);  // here: memset_past
}

__global__ void memcpy_unset(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  if (threadIdx.x == 0) memset(s, 0, fixed ? sizeof s : sizeof s - 4);
  __syncthreads();
  if (threadIdx.x == 1) std::memcpy(b.out, s, sizeof s);  // here: memcpy_unset
}

__device__ int variable;
__constant__ int constant = 3;
__global__ void device_variable(Buffers b, bool fixed) {
  if (!fixed && threadIdx.x == 0) variable = 1;  // here: device_variable
  b.out[threadIdx.x] = static_cast<float>(constant);
}

__global__ void matrix_in_global(Buffers b, bool fixed) {
  std::uint32_t r[1];
  SIMT_SHARED(float, s, [64]);
  s[threadIdx.x] = b.in[threadIdx.x];
  s[threadIdx.x + 32] = b.in[threadIdx.x + 32];
  __syncwarp();
  const float* const from = fixed ? &s[0] : b.in;
  simt::ldmatrix_x1(r, from + 4 * (threadIdx.x & 7));  // here: matrix_in_global
  b.out[threadIdx.x] = static_cast<float>(r[0] & 1);
}

__global__ void async_from_shared(Buffers b, bool fixed) {
  SIMT_SHARED(float, x, [64]);
  SIMT_SHARED(float, y, [64]);
  const unsigned t = threadIdx.x;
  x[t] = 1;
  __syncthreads();
  simt::cp_async4(&y[t], fixed ? b.in + t : &x[t]);  // here: async_from_shared
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  b.out[t] = x[t] + y[t];
}

__global__ void async_source(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  float* const source = b.matrices + threadIdx.x;
  *source = 1;
  simt::cp_async4(&s[threadIdx.x], source);  // here: async_source
  simt::cp_async_commit();
  if (!fixed) *source = 9;
  simt::cp_async_wait<0>();
  if (fixed) *source = 9;
  b.out[threadIdx.x] = s[threadIdx.x];
}

__global__ void constant_read_first(Buffers b, bool fixed) {
  const unsigned i = threadIdx.x;
  const float x = __ldg((fixed ? b.in : b.out) + i);  // here: constant_read_first
  b.out[i] = x + 1;                                   // here: constant_read_first
}

__global__ void constant_written_first(Buffers b, bool fixed) {
  const unsigned i = threadIdx.x;
  b.out[i] = 1;  // here: constant_written_first
  __syncthreads();
  b.matrices[i] = __ldg((fixed ? b.in : b.out) + i);  // here: constant_written_first
}

__global__ void constant_neighbour(Buffers b, bool fixed) {
  const auto* const halves = reinterpret_cast<const std::uint16_t*>(b.in) + 2 * threadIdx.x;
  auto* const out = reinterpret_cast<std::uint16_t*>(const_cast<float*>(b.in)) + 2 * threadIdx.x;
  const unsigned x = __ldg(halves);                                // here: constant_neighbour
  out[fixed ? 1 : 0] = static_cast<std::uint16_t>(x);              // here: constant_neighbour
  b.out[threadIdx.x] = static_cast<float>(__ldg(halves) + fixed);  // here: constant_neighbour
}

__global__ void constant_in_shared(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  s[threadIdx.x] = 1;
  const float* const p = fixed ? b.in : s;
  b.out[threadIdx.x] = __ldg(p + threadIdx.x);  // here: constant_in_shared
}

}  // namespace braid::simt_tests::wrong

namespace braid::simt_tests {

std::span<const WrongKernel> wrong_kernels() {
  using namespace wrong;
  using enum simt::Finding;
  static constexpr const char *kOut = "global allocation of 256 bytes",
                              *kMatrices = "global allocation of 49152 bytes";
  static constexpr WrongKernel list[] = {
      {"shared_bounds", out_of_bounds, "u", shared_bounds},
      {"global_bounds", out_of_bounds, kOut, global_bounds},
      {"missing_barrier", race, "s", missing_barrier},
      {"missing_loop_barrier", race, "s", missing_loop_barrier},
      {"missing_warp_barrier", race, "s", missing_warp_barrier, 32},
      {"two_barriers", divergent_barrier, "", two_barriers},
      {"barrier_of_some", divergent_barrier, "", barrier_of_some},
      {"shuffle_of_half", divergent_warp, "", shuffle_of_half},
      {"foreign_mask", wrong_mask, "", foreign_mask},
      {"crossed_masks", wrong_mask, "", crossed_masks, 32},
      {"foreign_source", wrong_mask, "", foreign_source, 32},
      {"uninitialised_shared", uninitialised, "s", uninitialised_shared},
      {"missing_atomic", race, kOut, missing_atomic},
      {"two_blocks", race, kOut, two_blocks, 32, 4},
      {"host_pointer", invalid_address, "", host_pointer},
      {"misaligned_vector", misaligned, kOut, misaligned_vector, 1},
      {"weak_wait", uninitialised, "as", weak_wait},
      {"no_wait", async_copy, "", no_wait},
      {"missing_fence", race, kMatrices, missing_fence, 32, 16},
      {"missing_fence_of_atomics", race, kOut, missing_fence_of_atomics, 32, 8},
      {"last_thread", race, "s", last_thread},
      {"read_after_atomic", race, "s", read_after_atomic},
      {"uninitialised_global", uninitialised, kMatrices, uninitialised_global},
      {"spin_on_flag", spin_wait, kOut, spin_on_flag},
      {"spin_on_lock", spin_wait, "", spin_on_lock, 64, 4},
      {"spin_on_vote", spin_wait, kOut, spin_on_vote, 32},
      {"spin_on_barrier", spin_wait, "", spin_on_barrier},
      {"spin_on_three", spin_wait, kOut, spin_on_three, 32},
      {"spin_with_counter", spin_wait, kOut, spin_with_counter, 32},
      {"memset_past", out_of_bounds, kOut, memset_past},
      {"memcpy_unset", uninitialised, "s", memcpy_unset},
      {"device_variable", invalid_address, "", device_variable},
      {"matrix_in_global", invalid_address, "", matrix_in_global, 32},
      {"async_from_shared", invalid_address, "", async_from_shared},
      {"async_source", race, "", async_source},
      {"constant_read_first", race, kOut, constant_read_first},
      {"constant_written_first", race, kOut, constant_written_first},
      {"constant_neighbour", race, kOut, constant_neighbour},
      {"constant_in_shared", invalid_address, "s", constant_in_shared},
      {"too_much_shared", shared_memory, "", too_much_shared},
      {"too_much_beside", shared_memory, "", too_much_beside, 64, 1, 32 << 10},
      {"too_many_arrays", shared_memory, "", too_many_arrays, 64, 1, 64 << 10},
      {"more_than_the_device", shared_memory, "", more_than_the_device, 64, 1, 200 << 10},
      {"local_of_another", invalid_address, "", local_of_another},
  };
  return list;
}

void run_wrong(const WrongKernel& k, const Buffers& b, bool fixed) {
  run(k.kernel, k.blocks, k.threads, k.shared_bytes, b, fixed);
}

// Contains instrumented copies of functions that build reports. The linker may use them for the
// whole program.
std::string text_of_the_host(const char* a, char b) {
  return std::string(a).append(2, b).insert(0, "+").substr(1);
}

}  // namespace braid::simt_tests
