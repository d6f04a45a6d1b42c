// The fake cuBLAS for emulated devices: plain loops behind the same function table, column-major
// and with the same checks of arguments as the library.
#include "cuda/cublas_fake.hpp"

#include <atomic>

#include "cuda/cublas_api.hpp"
#include "simt/simt.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  int math_mode = 0;
};

namespace braid::cuda::cublas {

struct FakeGemmShape {
  int m, n, k;
  bool ta, tb, reads_c;
  int lda, ldb, ldc;
  long long stride_a, stride_b, stride_c;
  int batch;
};

/// An operand of float32 that is rounded to TF32.
struct Tf32 {
  float x;
  __device__ explicit operator float() const { return __uint_as_float(simt::to_tf32(x)); }
};

/// C = op(A) op(B) (+ C), one element per thread, summed along k in order.
template <class Operand, class T, class Sum>
__global__ void fake_gemm(FakeGemmShape s, const Operand* a, const Operand* b, T* c) {
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long size = static_cast<long long>(s.m) * s.n;
  if (at >= size * s.batch) return;
  const long long matrix = at / size, i = at % size % s.m, j = at % size / s.m;
  const Operand* const x = a + matrix * s.stride_a;
  const Operand* const y = b + matrix * s.stride_b;
  Sum sum = 0;
  for (long long p = 0; p < s.k; ++p)
    sum += static_cast<Sum>(s.ta ? x[i * s.lda + p] : x[p * s.lda + i]) *
           static_cast<Sum>(s.tb ? y[p * s.ldb + j] : y[j * s.ldb + p]);
  T* const out = c + matrix * s.stride_c + j * s.ldc + i;
  if (s.reads_c) sum += static_cast<Sum>(*out);
  *out = static_cast<T>(sum);
}

namespace {

constexpr Status kInvalid = 7, kNotSupported = 15, kExecutionFailed = 13;

std::atomic<bool> installed{false};

/// As the library, it needs memory of the device, and so fails in a capture.
Status create(Handle* handle) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, 256) != cudaSuccess || cudaFree(memory) != cudaSuccess)
    return kNotInitialized;
  *handle = new cublasContext;
  return kSuccess;
}
Status destroy(Handle handle) {
  delete handle;
  return kSuccess;
}
Status set_stream(Handle handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = nullptr;  // as the library does
  return kSuccess;
}
Status set_workspace(Handle handle, void* workspace, std::size_t) {
  handle->workspace = workspace;
  return kSuccess;
}
Status set_math_mode(Handle handle, int mode) {
  if ((mode & ~(3 | kMathFullReductions)) != 0) return kInvalid;
  handle->math_mode = mode;
  return kSuccess;
}

template <class Operand, class T, class Sum>
Status run(Handle handle, int transa, int transb, int m, int n, int k, Sum alpha, const Operand* a,
           int lda, long long stride_a, const Operand* b, int ldb, long long stride_b, Sum beta,
           T* c, int ldc, long long stride_c, int batch) {
  if (handle == nullptr || handle->workspace == nullptr) return kNotInitialized;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || transa < 0 || transa > 1 || transb < 0 || transb > 1)
    return kInvalid;
  const auto least = [](int rows) { return rows > 1 ? rows : 1; };
  if (lda < least(transa == kTranspose ? k : m) || ldb < least(transb == kTranspose ? n : k) ||
      ldc < least(m))
    return kInvalid;
  if (alpha != Sum{1} || (beta != Sum{0} && beta != Sum{1})) return kNotSupported;
  const FakeGemmShape shape{m,
                            n,
                            k,
                            transa == kTranspose,
                            transb == kTranspose,
                            beta == Sum{1},
                            lda,
                            ldb,
                            ldc,
                            stride_a,
                            stride_b,
                            stride_c,
                            batch};
  const long long count = static_cast<long long>(m) * n * batch;
  if (count == 0) return kSuccess;
  constexpr unsigned kBlock = 128;
  const auto blocks = static_cast<unsigned>((count + kBlock - 1) / kBlock);
  return simt::launch(fake_gemm<Operand, T, Sum>, dim3(blocks), dim3(kBlock), 0, handle->stream,
                      shape, a, b, c) == cudaSuccess
             ? kSuccess
             : kExecutionFailed;
}

template <class T>
Status gemm(Handle handle, int transa, int transb, int m, int n, int k, const T* alpha, const T* a,
            int lda, long long stride_a, const T* b, int ldb, long long stride_b, const T* beta,
            T* c, int ldc, long long stride_c, int batch) {
  return run<T, T, T>(handle, transa, transb, m, n, k, *alpha, a, lda, stride_a, b, ldb, stride_b,
                      *beta, c, ldc, stride_c, batch);
}

Status gemm_ex(Handle handle, int transa, int transb, int m, int n, int k, const void* alpha,
               const void* a, int type_a, int lda, long long stride_a, const void* b, int type_b,
               int ldb, long long stride_b, const void* beta, void* c, int type_c, int ldc,
               long long stride_c, int batch, int compute, int algorithm) {
  if (type_a != type_b || type_a != type_c || algorithm != kDefaultAlgorithm ||
      compute != (type_a == kFloat32 ? kComputeTf32 : kComputeFloat32))
    return kNotSupported;
  const auto typed = [&]<class Operand, class T>(Operand*, T*) {
    return run<Operand, T, float>(
        handle, transa, transb, m, n, k, *static_cast<const float*>(alpha),
        static_cast<const Operand*>(a), lda, stride_a, static_cast<const Operand*>(b), ldb,
        stride_b, *static_cast<const float*>(beta), static_cast<T*>(c), ldc, stride_c, batch);
  };
  const auto same = [&]<class T>(T* type) { return typed(type, type); };
  if (type_a == kFloat16) return same(static_cast<simt::half_t*>(nullptr));
  if (type_a == kBfloat16) return same(static_cast<simt::bfloat16_t*>(nullptr));
  if (type_a == kFloat32) return typed(static_cast<Tf32*>(nullptr), static_cast<float*>(nullptr));
  return kNotSupported;
}

}  // namespace

Functions library_functions() {
  return {&create,       &destroy, &set_stream, &set_workspace, &set_math_mode, &gemm<float>,
          &gemm<double>, &gemm_ex, 256};
}

bool is_installed() { return installed.load(std::memory_order_relaxed); }
void set_fake_installed(bool value) noexcept { installed.store(value, std::memory_order_relaxed); }

}  // namespace braid::cuda::cublas
