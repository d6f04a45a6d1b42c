// The kernels. nvcc compiles them for a GPU. The C++ compiler compiles them for the emulation,
// which checks every access. simt::launch replaces <<<>>> in both.
#include <algorithm>
#include <cstdint>

#include "simt/simt.hpp"

namespace {

constexpr unsigned kThreads = 256;

/// Returns enough blocks for n elements, up to the most that any GPU needs. Threads step by the
/// size of the grid.
dim3 blocks_for(std::int64_t n) {
  return dim3(static_cast<unsigned>(std::min<std::int64_t>((n + kThreads - 1) / kThreads, 4096)));
}

}  // namespace

template <class T> __global__ void softsign_kernel(const T* x, T* y, std::int64_t n) {
  const auto stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    const T v = x[i];
    y[i] = v / (1 + (v < 0 ? -v : v));
  }
}

template <class T>
__global__ void softsign_backward_kernel(const T* x, const T* dy, T* dx, std::int64_t n) {
  const auto stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    const T v = x[i];
    const T d = 1 + (v < 0 ? -v : v);
    dx[i] = dy[i] / (d * d);
  }
}

template <class T> int launch_softsign(const T* x, T* y, std::int64_t n, void* stream) {
  if (n == 0) return cudaSuccess;  // a grid has at least one block
  return braid::simt::launch(softsign_kernel<T>, blocks_for(n), kThreads, 0,
                             static_cast<cudaStream_t>(stream), x, y, n);
}

template <class T>
int launch_softsign_backward(const T* x, const T* dy, T* dx, std::int64_t n, void* stream) {
  if (n == 0) return cudaSuccess;
  return braid::simt::launch(softsign_backward_kernel<T>, blocks_for(n), kThreads, 0,
                             static_cast<cudaStream_t>(stream), x, dy, dx, n);
}

template int launch_softsign(const float*, float*, std::int64_t, void*);
template int launch_softsign(const double*, double*, std::int64_t, void*);
template int launch_softsign_backward(const float*, const float*, float*, std::int64_t, void*);
template int launch_softsign_backward(const double*, const double*, double*, std::int64_t, void*);
