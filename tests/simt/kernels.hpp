#pragma once
// Correct kernels of all the kinds that the engine needs: kernels_rows.cu, kernels_gemm.cu,
// kernels_mma.cu. Pointers are device memory.
namespace braid::simt_tests {

void add(int n, const float* a, const float* b, float* c);
void softmax(int rows, int cols, const float* x, float* y);
void layernorm(int rows, int cols, const float* x, const float* gain, const float* bias, float eps,
               float* y, float* mean, float* rstd);
void layernorm_backward(int rows, int cols, const float* dy, const float* x, const float* gain,
                        const float* mean, const float* rstd, float* dx, float* dgain,
                        float* dbias);
void column_sum(int rows, int cols, const float* dy, float* db);
void embedding_backward(int n, int dim, const int* index, const float* dy, float* dw);
void last_block_sum(int n, const float* x, float* partial, unsigned* counter, float* sum);
void gemm_tiled(int m, int n, int k, const float* a, const float* b, float* c);     // 128x128x8
void gemm_textbook(int m, int n, int k, const float* a, const float* b, float* c);  // 16x16
// cp.async; n % 4 == 0, k % 4 == 0
void gemm_async(int m, int n, int k, const float* a, const float* b, float* c);
// ldmatrix and mma; multiples of 64, 64, 16
void gemm_bfloat16(int m, int n, int k, const void* a, const void* b, float* c);
void gemm_float16(int m, int n, int k, const void* a, const void* b, float* c);
// multiples of 16, 8, 8
void gemm_tf32(int m, int n, int k, const float* a, const float* b, float* c);

}  // namespace braid::simt_tests
