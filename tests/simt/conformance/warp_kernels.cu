#include "warp_kernels.hpp"

#include "simt/run_kernel.hpp"

namespace braid::simt_tests {

__global__ void votes_kernel(std::uint32_t* out) {
  const bool odd = (threadIdx.x & 1) != 0;
  const std::uint32_t ballot = __ballot_sync(0xffffffffu, odd);
  const int any = __any_sync(0xffffffffu, threadIdx.x == 5);
  const int all = __all_sync(0xffffffffu, threadIdx.x < 32);
  const int not_all = __all_sync(0xffffffffu, odd);
  const std::uint32_t match = __match_any_sync(0xffffffffu, static_cast<int>(threadIdx.x % 4));
  const int count = __syncthreads_count(odd);
  const int every = __syncthreads_and(threadIdx.x < 32);
  const int some = __syncthreads_or(threadIdx.x == 99);
  if (threadIdx.x == 2) {
    out[0] = ballot;
    out[1] = static_cast<std::uint32_t>(any);
    out[2] = static_cast<std::uint32_t>(all);
    out[3] = static_cast<std::uint32_t>(not_all);
    out[4] = match;
    out[5] = static_cast<std::uint32_t>(count);
    out[6] = static_cast<std::uint32_t>(every != 0);
    out[7] = static_cast<std::uint32_t>(some != 0);
  }
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
