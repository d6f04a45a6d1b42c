#pragma once
// The kernels of bench_simt: the same matrix product compiled twice, as it is and with the
// checker's instrumentation.
namespace bench {

void barriers(int threads, int count);  // one block that does nothing but __syncthreads
void gemm_plain(int n, const float* a, const float* b, float* c);
void gemm_checked(int n, const float* a, const float* b, float* c);

}  // namespace bench
