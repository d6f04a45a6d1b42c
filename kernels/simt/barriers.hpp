#pragma once
#include <cstdint>

#include "simt/location.hpp"
#include "simt/types.hpp"

/// Barriers of some threads of a block, for warps that do different work, as a warp that copies and
/// warps that multiply. Under nvcc they are the PTX instructions of sm_80. In the emulation a
/// thread that waits lets others run, and the checker knows which accesses they order.
namespace braid::simt {

#if defined(__CUDACC__)

/// Waits until `threads` threads of the block have called named_barrier_sync or
/// named_barrier_arrive with this id, 1 to 15. What they did before is then visible. `threads` is a
/// multiple of 32, and all lanes of a warp make the call together.
__device__ inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// As named_barrier_sync, for threads that do not wait.
__device__ inline void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Makes a barrier in shared memory, whose phases each end with `arrivals` calls of
/// mbarrier_arrive. One thread calls it; a __syncthreads makes it visible to the others.
__device__ inline void mbarrier_init(std::uint64_t* barrier, unsigned arrivals) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(p), "r"(arrivals) : "memory");
}
/// Arrives without waiting. What the thread did before is visible to those that wait for the phase.
__device__ inline void mbarrier_arrive(std::uint64_t* barrier) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(p)
               : "memory");
}
/// Arrives when all cp.async of this thread so far have landed. It counts as one of the arrivals.
__device__ inline void cp_async_mbarrier_arrive(std::uint64_t* barrier) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(p) : "memory");
}
/// Waits for the end of the phase of this parity: 0 for the first, third, … phase, 1 for the
/// others. A new barrier counts as after a phase of parity 1.
__device__ inline void mbarrier_wait(std::uint64_t* barrier, unsigned parity) {
  const unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  unsigned done = 0;
  do {
    asm volatile(
        "{\n.reg .pred done;\nmbarrier.test_wait.parity.shared.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n}"
        : "=r"(done)
        : "r"(p), "r"(parity)
        : "memory");
  } while (done == 0);
}

#elif SIMT_EMULATED

namespace detail {
void named_barrier(int id, int threads, bool waits, Location where);
void mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Location where);
void mbarrier_arrive(std::uint64_t* barrier, bool copies, Location where);
void mbarrier_wait(std::uint64_t* barrier, unsigned parity, Location where);
}  // namespace detail

inline void named_barrier_sync(int id, int threads, Location w = Location::current()) {
  detail::named_barrier(id, threads, true, w);
}
inline void named_barrier_arrive(int id, int threads, Location w = Location::current()) {
  detail::named_barrier(id, threads, false, w);
}
inline void mbarrier_init(std::uint64_t* barrier, unsigned arrivals,
                          Location w = Location::current()) {
  detail::mbarrier_init(barrier, arrivals, w);
}
inline void mbarrier_arrive(std::uint64_t* barrier, Location w = Location::current()) {
  detail::mbarrier_arrive(barrier, false, w);
}
inline void cp_async_mbarrier_arrive(std::uint64_t* barrier, Location w = Location::current()) {
  detail::mbarrier_arrive(barrier, true, w);
}
inline void mbarrier_wait(std::uint64_t* barrier, unsigned parity,
                          Location w = Location::current()) {
  detail::mbarrier_wait(barrier, parity, w);
}

#endif

}  // namespace braid::simt
