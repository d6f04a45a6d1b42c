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
void copy(const float* from, float* to, int n) { run(copy_kernel, (n + 31) / 32, 32, 0, from, to, n); }

}  // namespace braid::simt_tests
