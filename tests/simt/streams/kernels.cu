#include "kernels.hpp"

namespace braid::streams_test {

__global__ void fill(float* to, int n, float value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = value;
}

__global__ void copy_values(float* to, const float* from, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i];
}

__global__ void write_past_end(float* to, int n) {
  const int i = static_cast<int>(threadIdx.x);
  if (i <= n) to[i] = 1.0f;
}

float first_on_host(const float* p) { return *p; }
void set_on_host(float* p) { *p = 1.0f; }

}  // namespace braid::streams_test
