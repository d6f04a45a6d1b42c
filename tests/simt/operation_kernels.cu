#include "operation_kernels.hpp"

#include "run_kernel.hpp"

namespace braid::simt_tests {

__global__ void fill_kernel(float* p, float value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = value;
}

__global__ void copy_kernel(const float* from, float* to, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i];
}

void fill(float* p, float value, int n) { run(fill_kernel, (n + 31) / 32, 32, 0, p, value, n); }
void copy(const float* from, float* to, int n) { run(copy_kernel, (n + 31) / 32, 32, 0, from, to, n); }

}  // namespace braid::simt_tests
