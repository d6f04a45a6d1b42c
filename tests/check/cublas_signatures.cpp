// Compiled with the toolkit's headers, it checks that our declarations of cuBLAS equal those of
// cublas_v2.h. When run, it opens the library if it is installed.
#include <cublas_v2.h>

#include <cstdio>
#include <exception>
#include <type_traits>

#include "cuda/cublas_api.hpp"
#include "same_signature.hpp"

namespace {

namespace ours = braid::cuda::cublas;
using braid::check::kSame;

constexpr ours::Functions kTable{};
static_assert(kSame<decltype(&cublasCreate_v2), std::remove_cv_t<decltype(kTable.create)>>);
static_assert(kSame<decltype(&cublasDestroy_v2), std::remove_cv_t<decltype(kTable.destroy)>>);
static_assert(kSame<decltype(&cublasSetStream_v2), std::remove_cv_t<decltype(kTable.set_stream)>>);
static_assert(
    kSame<decltype(&cublasSetWorkspace_v2), std::remove_cv_t<decltype(kTable.set_workspace)>>);
static_assert(
    kSame<decltype(&cublasSetMathMode), std::remove_cv_t<decltype(kTable.set_math_mode)>>);
static_assert(
    kSame<decltype(&cublasSgemmStridedBatched), std::remove_cv_t<decltype(kTable.sgemm)>>);
static_assert(
    kSame<decltype(&cublasDgemmStridedBatched), std::remove_cv_t<decltype(kTable.dgemm)>>);
// Overloaded in C++: the exported function takes a cublasComputeType_t.
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, long long,
                                  const void*, cudaDataType, int, long long, const void*, void*,
                                  cudaDataType, int, long long, int, cublasComputeType_t,
                                  cublasGemmAlgo_t);
// this overload exists
static_assert(std::is_same_v<decltype(static_cast<GemmEx>(&cublasGemmStridedBatchedEx)), GemmEx>);
static_assert(kSame<GemmEx, std::remove_cv_t<decltype(kTable.gemm_ex)>>);

static_assert(ours::kSuccess == CUBLAS_STATUS_SUCCESS &&
              ours::kAllocFailed == CUBLAS_STATUS_ALLOC_FAILED);
static_assert(ours::kNoTranspose == CUBLAS_OP_N && ours::kTranspose == CUBLAS_OP_T);
static_assert(ours::kFloat32 == CUDA_R_32F && ours::kFloat16 == CUDA_R_16F &&
              ours::kBfloat16 == CUDA_R_16BF);
static_assert(ours::kComputeFloat32 == CUBLAS_COMPUTE_32F &&
              ours::kComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32 &&
              ours::kDefaultAlgorithm == CUBLAS_GEMM_DEFAULT);
static_assert(ours::kMathDefault == CUBLAS_DEFAULT_MATH &&
              ours::kMathFullReductions == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

}  // namespace

int main() {
  try {
    const ours::Functions f = ours::open_library(ours::library_names());
    std::printf("cuBLAS: opened, %s\n",
                f.gemm_ex != nullptr ? "all functions found" : "functions missing");
    return f.gemm_ex != nullptr ? 0 : 1;
  } catch (const std::exception& e) {
    std::printf("SKIP(%s)\n", e.what());
    return 77;
  }
}
