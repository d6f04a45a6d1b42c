#pragma once
/// The only header that kernel files include. Under nvcc it is a thin layer over CUDA. Under a
/// plain C++ compiler it is CUDA's device language on the CPU (see docs/guides/debug_a_kernel.md).
/// Rules for kernels:
///   - Declare shared memory with SIMT_SHARED and SIMT_DYN_SHARED. Launch with simt::launch, never
///     with <<<>>>. Kernels are not static.
///   - At most one barrier per source line; explicit masks; PTX only through simt/ptx.hpp and
///     simt/barriers.hpp. A thread waits for memory only with load_acquire, and only for threads
///     of its block and blocks that have begun.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simt/barriers.hpp"
#include "simt/cuda_runtime.hpp"
#include "simt/half.hpp"
#include "simt/launch.hpp"
#include "simt/ptx.hpp"
#include "simt/types.hpp"

#if SIMT_EMULATED
#include "simt/device.hpp"
#elif defined(__CUDACC__)
#include <cstdio>

#define SIMT_SHARED(T, name, ...) __shared__ T name __VA_ARGS__
#define SIMT_DYN_SHARED(T, name)                                        \
  extern __shared__ __align__(16) unsigned char simt_dynamic_shared_[]; \
  T* name = reinterpret_cast<T*>(simt_dynamic_shared_)
#endif

namespace braid::simt {

#if SIMT_EMULATED

/// Launches a kernel on a stream. The arguments are copied in the call and converted to the
/// kernel's parameter types. kDynamicWithAttribute has the rule for shared memory. Returns
/// cudaErrorInvalidConfiguration for sizes that CUDA does not accept, otherwise the result of the
/// enqueue.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), GridAt grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, A&&... arguments) {
  const Launch what{grid.grid, block,     shared_bytes, reinterpret_cast<const void*>(kernel),
                    nullptr,   grid.where};
  return detail::enqueue_launch(what, stream, make_closure(kernel, std::forward<A>(arguments)...));
}

#elif defined(__CUDACC__)

template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, A&&... arguments) {
  if (shared_bytes > kDynamicWithAttribute) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  // Returns the result of the launch itself: cudaPeekAtLastError would also return an error that an
  // earlier call of the program has left on this thread.
  return [&](std::decay_t<P>... values) {
    void* pointers[] = {static_cast<void*>(&values)..., nullptr};
    return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers,
                            shared_bytes, stream);
  }(static_cast<std::decay_t<P>>(std::forward<A>(arguments))...);
}

/// printf of one thread, with its coordinates in front and a newline at the end.
template <class... A> __device__ void trace(const char* format, A... arguments) {
  printf("[b%u,%u,%u t%u,%u,%u] ", blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
         threadIdx.z);
  printf(format, arguments...);
  printf("\n");
}

#endif

}  // namespace braid::simt
