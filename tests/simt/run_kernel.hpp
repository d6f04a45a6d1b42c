#pragma once
// Launches a kernel of a test and waits for it, in the emulation and on a GPU.
#include "simt/simt.hpp"

#if defined(__CUDACC__)
#include <stdexcept>
#endif

namespace braid::simt_tests {

#if SIMT_EMULATED
template <class... P, class... A>
void run(void (*kernel)(P...), simt::GridAt grid, dim3 block, std::size_t shared_bytes,
         A&&... arguments) {
  simt::launch_now(kernel, grid, block, shared_bytes, std::forward<A>(arguments)...);
}
#elif defined(__CUDACC__)
template <class... P, class... A>
void run(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, A&&... arguments) {
  cudaError_t error =
      simt::launch(kernel, grid, block, shared_bytes, nullptr, static_cast<A&&>(arguments)...);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
#endif

}  // namespace braid::simt_tests
