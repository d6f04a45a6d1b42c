#pragma once
// The kernels of bench_simt: the same matrix product compiled twice, without and with the checker's
// instrumentation.
namespace bench {

void barriers(int threads, int count);  // one block that only calls __syncthreads
void gemm_plain(int n, const float* a, const float* b, float* c);
void gemm_checked(int n, const float* a, const float* b, float* c);

}  // namespace bench
