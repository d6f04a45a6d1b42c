// Kernels with barriers of some threads of a block, right ones and wrong ones. As in
// wrong_kernels.cu, the lines that a report must name end in `// here: <name>`.
#include "kernels.hpp"
#include "run_kernel.hpp"
#include "wrong_kernels.hpp"

namespace braid::simt_tests {

// Warp 0 copies tiles of 64 to a ring of two, and two warps add them up: 96 threads.
__global__ void mbarrier_ring(const float* in, float* out, int tiles) {
  SIMT_SHARED(float, s, [2][64]);
  SIMT_SHARED(std::uint64_t, full, [2]);
  SIMT_SHARED(std::uint64_t, empty, [2]);
  const unsigned t = threadIdx.x;
  if (t == 0)
    for (int i = 0; i < 2; ++i) {
      simt::mbarrier_init(&full[i], 32);
      simt::mbarrier_init(&empty[i], 64);
    }
  __syncthreads();
  if (t < 32) {
    for (int i = 0; i < tiles; ++i) {
      const int stage = i % 2, round = i / 2;
      simt::mbarrier_wait(&empty[stage], (round + 1) % 2);
      for (unsigned k = t; k < 64; k += 32) simt::cp_async4(&s[stage][k], in + i * 64 + k);
      simt::cp_async_mbarrier_arrive(&full[stage]);
    }
    return;
  }
  float sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int stage = i % 2, round = i / 2;
    simt::mbarrier_wait(&full[stage], round % 2);
    sum += s[stage][95 - t];
    simt::mbarrier_arrive(&empty[stage]);
  }
  out[t - 32] = sum;
}

// The same with named barriers: 1 and 2 say that a tile is there, 3 and 4 that it was read.
__global__ void named_barrier_ring(const float* in, float* out, int tiles) {
  SIMT_SHARED(float, s, [2][64]);
  const unsigned t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int stage = i % 2;
    if (t < 32) {
      if (i >= 2) simt::named_barrier_sync(3 + stage, 96);
      for (unsigned k = t; k < 64; k += 32) s[stage][k] = in[i * 64 + k];
      simt::named_barrier_arrive(1 + stage, 96);
    } else {
      simt::named_barrier_sync(1 + stage, 96);
      sum += s[stage][95 - t];
      if (i + 2 < tiles) simt::named_barrier_arrive(3 + stage, 96);
    }
  }
  if (t >= 32) out[t - 32] = sum;
}

// Threads of two warps write the halves of words, and the third warp waits for one half at a time:
// 96 threads.
__global__ void halves_of_words(float* out) {
  SIMT_SHARED(std::uint16_t, s, [64]);
  SIMT_SHARED(std::uint64_t, written, [2]);
  const unsigned t = threadIdx.x, warp = t / 32, lane = t % 32;
  if (t < 2) simt::mbarrier_init(&written[t], 32);
  __syncthreads();
  if (warp < 2) {
    s[2 * lane + warp] = static_cast<std::uint16_t>(t + 1);
    simt::mbarrier_arrive(&written[warp]);
    return;
  }
  unsigned sum = 0;
  for (unsigned i = 0; i < 2; ++i) {
    simt::mbarrier_wait(&written[i], 0);
    sum += s[2 * (31 - lane) + i];
  }
  out[lane] = static_cast<float>(sum);
}

// Lane 0 waits for the other warp, and __syncwarp tells its own: 64 threads.
__global__ void one_lane_waits(float* out) {
  SIMT_SHARED(float, s, [32]);
  SIMT_SHARED(std::uint64_t, written, [1]);
  const unsigned t = threadIdx.x;
  if (t == 0) simt::mbarrier_init(&written[0], 32);
  __syncthreads();
  if (t >= 32) {
    s[t - 32] = static_cast<float>(t);
    simt::mbarrier_arrive(&written[0]);
    return;
  }
  if (t == 0) simt::mbarrier_wait(&written[0], 0);
  __syncwarp();
  out[t] = s[31 - t];
}

// Each of 64 threads takes 50 numbers.
__global__ void take_turns(unsigned* counter, unsigned* turns) {
  for (int i = 0; i < 50; ++i) turns[50 * threadIdx.x + i] = atomicAdd(counter, 1u);
}

}  // namespace braid::simt_tests

namespace braid::simt_tests::wrong {

__global__ void named_barrier_missing(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [32]);
  const unsigned t = threadIdx.x;
  if (t < 32) s[t] = 0;
  __syncthreads();
  if (t < 32) {
    s[t] = 1;  // here: named_barrier_missing
    simt::named_barrier_arrive(1, 64);
  } else {
    if (fixed) simt::named_barrier_sync(1, 64);
    b.out[t] = s[63 - t];  // here: named_barrier_missing
  }
}

// The warp that only arrives does not know what the others did.
__global__ void named_barrier_arrived(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [32]);
  const unsigned t = threadIdx.x;
  if (t < 32) {
    s[t] = 1;  // here: named_barrier_arrived
    simt::named_barrier_sync(1, 64);
  } else {
    if (fixed) simt::named_barrier_sync(1, 64);
    else simt::named_barrier_arrive(1, 64);
    s[63 - t] = b.in[t];  // here: named_barrier_arrived
  }
}

__global__ void named_barriers_differ(Buffers b, bool fixed) {
  const unsigned t = threadIdx.x;
  const int id = fixed ? 1 : 1 + static_cast<int>(t / 32);
  simt::named_barrier_sync(id, 64);  // here: named_barriers_differ
  b.out[t] = 1;
}

__global__ void named_barrier_of_two(Buffers b, bool fixed) {
  const unsigned t = threadIdx.x;
  simt::named_barrier_sync(1, fixed || t < 32 ? 64 : 32);  // here: named_barrier_of_two
  b.out[t] = 1;
}

__global__ void named_barrier_of_half(Buffers b, bool fixed) {
  const unsigned t = threadIdx.x;
  if (fixed || t % 32 < 16) simt::named_barrier_sync(1, 64);  // here: named_barrier_of_half
  b.out[t] = 1;
}

__global__ void named_barrier_twice(Buffers b, bool fixed) {
  const unsigned t = threadIdx.x;
  if (t < 32) {
    simt::named_barrier_arrive(1, 64);
    if (!fixed) simt::named_barrier_arrive(1, 64);  // here: named_barrier_twice
    simt::named_barrier_sync(2, 64);
  } else {
    simt::named_barrier_sync(2, 64);
    simt::named_barrier_sync(1, 64);
  }
  b.out[t] = 1;
}

// Warp 0 writes, warp 1 reads.
__global__ void mbarrier_no_wait(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [32]);
  SIMT_SHARED(std::uint64_t, bar, [1]);
  const unsigned t = threadIdx.x;
  if (t < 32) s[t] = 0;
  if (t == 0) simt::mbarrier_init(&bar[0], 32);
  __syncthreads();
  if (t < 32) {
    s[t] = 1;  // here: mbarrier_no_wait
    simt::mbarrier_arrive(&bar[0]);
  } else {
    if (fixed) simt::mbarrier_wait(&bar[0], 0);
    b.out[t] = s[63 - t];  // here: mbarrier_no_wait
  }
}

__global__ void mbarrier_wrong_parity(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [32]);
  SIMT_SHARED(std::uint64_t, bar, [1]);
  const unsigned t = threadIdx.x;
  if (t < 32) s[t] = 0;
  if (t == 0) simt::mbarrier_init(&bar[0], 32);
  __syncthreads();
  if (t < 32) {
    s[t] = 1;  // here: mbarrier_wrong_parity
    simt::mbarrier_arrive(&bar[0]);
  } else {
    simt::mbarrier_wait(&bar[0], fixed ? 0 : 1);  // 1: as if a phase had ended before the first
    b.out[t] = s[63 - t];                         // here: mbarrier_wrong_parity
  }
}

__global__ void mbarrier_not_empty(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [32]);
  SIMT_SHARED(std::uint64_t, full, [1]);
  SIMT_SHARED(std::uint64_t, empty, [1]);
  const unsigned t = threadIdx.x;
  if (t == 0) {
    simt::mbarrier_init(&full[0], 32);
    simt::mbarrier_init(&empty[0], 32);
  }
  __syncthreads();
  float sum = 0;
  for (unsigned i = 0; i < 2; ++i) {
    if (t < 32) {
      if (fixed) simt::mbarrier_wait(&empty[0], (i + 1) % 2);
      s[t] = 1;  // here: mbarrier_not_empty
      simt::mbarrier_arrive(&full[0]);
      if (!fixed && i == 0) simt::mbarrier_wait(&full[0], 0);
    } else {
      simt::mbarrier_wait(&full[0], i);
      sum += s[63 - t];  // here: mbarrier_not_empty
      simt::mbarrier_arrive(&empty[0]);
    }
  }
  if (t >= 32) b.out[t] = sum;
}

__global__ void mbarrier_without_init(Buffers b, bool fixed) {
  SIMT_SHARED(std::uint64_t, bar, [1]);
  if (fixed && threadIdx.x == 0) simt::mbarrier_init(&bar[0], 64);
  __syncthreads();
  simt::mbarrier_arrive(&bar[0]);  // here: mbarrier_without_init
  b.out[threadIdx.x] = 1;
}

__global__ void mbarrier_of_one_more(Buffers b, bool fixed) {
  SIMT_SHARED(std::uint64_t, bar, [1]);
  if (threadIdx.x == 0) simt::mbarrier_init(&bar[0], fixed ? 64 : 65);
  __syncthreads();
  simt::mbarrier_arrive(&bar[0]);
  simt::mbarrier_wait(&bar[0], 0);  // here: mbarrier_of_one_more
  b.out[threadIdx.x] = 1;
}

// A plain arrival says nothing of copies in flight.
__global__ void mbarrier_before_copies(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [32]);
  SIMT_SHARED(std::uint64_t, full, [1]);
  SIMT_SHARED(std::uint64_t, read, [1]);
  const unsigned t = threadIdx.x;
  if (t == 0) {
    simt::mbarrier_init(&full[0], 32);
    simt::mbarrier_init(&read[0], 32);
  }
  __syncthreads();
  if (t < 32) {
    simt::cp_async4(&s[t], b.in + t);
    if (fixed) simt::cp_async_mbarrier_arrive(&full[0]);
    else simt::mbarrier_arrive(&full[0]);
    simt::mbarrier_wait(&read[0], 0);
    simt::cp_async_wait_all();
  } else {
    simt::mbarrier_wait(&full[0], 0);
    b.out[t] = s[63 - t];  // here: mbarrier_before_copies
    simt::mbarrier_arrive(&read[0]);
  }
}

// The thread that issued a copy waits for it too.
__global__ void mbarrier_own_copy(Buffers b, bool fixed) {
  SIMT_SHARED(float, s, [64]);
  SIMT_SHARED(std::uint64_t, full, [1]);
  if (threadIdx.x == 0) simt::mbarrier_init(&full[0], 64);
  __syncthreads();
  simt::cp_async4(&s[threadIdx.x], b.in + threadIdx.x);
  if (fixed) simt::cp_async_mbarrier_arrive(&full[0]);
  if (fixed) simt::mbarrier_wait(&full[0], 0);
  b.out[threadIdx.x] = s[threadIdx.x];  // here: mbarrier_own_copy
  if (!fixed) simt::cp_async_mbarrier_arrive(&full[0]);
}

}  // namespace braid::simt_tests::wrong

namespace braid::simt_tests {

std::span<const WrongKernel> wrong_barriers() {
  using namespace wrong;
  using enum simt::Finding;
  static constexpr WrongKernel list[] = {
      {"named_barrier_missing", race, "s", named_barrier_missing},
      {"named_barrier_arrived", race, "s", named_barrier_arrived},
      {"named_barriers_differ", divergent_barrier, "", named_barriers_differ},
      {"named_barrier_of_two", divergent_barrier, "", named_barrier_of_two},
      {"named_barrier_of_half", divergent_barrier, "", named_barrier_of_half},
      {"named_barrier_twice", divergent_barrier, "", named_barrier_twice},
      {"mbarrier_no_wait", race, "s", mbarrier_no_wait},
      {"mbarrier_wrong_parity", race, "s", mbarrier_wrong_parity},
      {"mbarrier_not_empty", race, "s", mbarrier_not_empty},
      {"mbarrier_without_init", uninitialised, "", mbarrier_without_init},
      {"mbarrier_of_one_more", divergent_barrier, "", mbarrier_of_one_more},
      {"mbarrier_before_copies", uninitialised, "s", mbarrier_before_copies},
      {"mbarrier_own_copy", uninitialised, "s", mbarrier_own_copy},
  };
  return list;
}

}  // namespace braid::simt_tests
