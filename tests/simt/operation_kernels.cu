#include "operation_kernels.hpp"

#include "run_kernel.hpp"
#if SIMT_EMULATED
#include "simt/device_memory.hpp"
#include "simt/stats.hpp"
#endif

namespace braid::simt_tests {

__global__ void fill_kernel(float* p, float value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = value;
}

__global__ void copy_kernel(const float* from, float* to, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i];
}

__global__ void fill_bytes_kernel(unsigned char* p, int n) {
  if (static_cast<int>(threadIdx.x) < n) p[threadIdx.x] = 1;
}
__global__ void copy_bytes_kernel(const unsigned char* from, unsigned char* to, int n) {
  if (static_cast<int>(threadIdx.x) < n) to[threadIdx.x] = from[threadIdx.x];
}
__global__ void count_kernel(unsigned* sum) { atomicAdd(sum, 1u); }
__global__ void read_count_kernel(const unsigned* sum, unsigned* out) {
  if (threadIdx.x == 0) out[0] = sum[0];
}

#if SIMT_EMULATED
bool instrumented() {
  alignas(16) static float memory[4];
  simt::register_memory(memory, sizeof memory, simt::MemoryKind::device, 0);
  const auto before = simt::stats().accesses;
  fill(memory, 1.0f, 4);
  simt::unregister_memory(memory);
  return simt::stats().accesses != before;
}
#endif

void fill(float* p, float value, int n) { run(fill_kernel, (n + 31) / 32, 32, 0, p, value, n); }
void copy(const float* from, float* to, int n) {
  run(copy_kernel, (n + 31) / 32, 32, 0, from, to, n);
}

void fill_bytes(unsigned char* p, int n) { run(fill_bytes_kernel, 1, 32, 0, p, n); }
void copy_bytes(const unsigned char* from, unsigned char* to, int n) {
  run(copy_bytes_kernel, 1, 32, 0, from, to, n);
}
void count(unsigned* sum) { run(count_kernel, 2, 32, 0, sum); }
void read_count(const unsigned* sum, unsigned* out) { run(read_count_kernel, 1, 32, 0, sum, out); }

}  // namespace braid::simt_tests
