#pragma once
namespace braid::simt_tests {

/// True if these kernels are compiled with the checker's instrumentation. Without it nothing but fences, atomics and vector accesses is seen.
[[nodiscard]] bool instrumented();

void fill(float* p, float value, int n);
void copy(const float* from, float* to, int n);

}  // namespace braid::simt_tests
