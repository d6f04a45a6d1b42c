#pragma once
#include <cstddef>
#include <span>

#include "simt/cuda_runtime.hpp"

struct cublasContext;  // the library's own name

// Braid's own declarations of the part of cuBLAS that it calls: building needs no cuBLAS header,
// and the library is loaded at run time. `./dev check cuda` compares them with cublas_v2.h.
// Enumerations are passed as int, as in C.
namespace braid::cuda::cublas {

using Handle = cublasContext*;
using Status = int;

inline constexpr Status kSuccess = 0, kNotInitialized = 1, kAllocFailed = 3;
inline constexpr int kNoTranspose = 0, kTranspose = 1;  // cublasOperation_t
// cudaDataType
inline constexpr int kFloat32 = 0, kFloat16 = 2, kBfloat16 = 14;
// cublasComputeType_t, cublasGemmAlgo_t
inline constexpr int kComputeFloat32 = 68, kComputeTf32 = 77, kDefaultAlgorithm = -1;
// cublasMath_t: TF32 only where kComputeTf32 says so; sums of 16-bit products stay in float32
inline constexpr int kMathDefault = 0, kMathFullReductions = 16;

template <class T>
using GemmStridedBatched = Status(Handle, int transa, int transb, int m, int n, int k,
                                  const T* alpha, const T* a, int lda, long long stride_a,
                                  const T* b, int ldb, long long stride_b, const T* beta, T* c,
                                  int ldc, long long stride_c, int batch);
using GemmStridedBatchedEx = Status(Handle, int transa, int transb, int m, int n, int k,
                                    const void* alpha, const void* a, int type_a, int lda,
                                    long long stride_a, const void* b, int type_b, int ldb,
                                    long long stride_b, const void* beta, void* c, int type_c,
                                    int ldc, long long stride_c, int batch, int compute,
                                    int algorithm);

/// The functions, with their names in the library.
struct Functions {
  Status (*create)(Handle*) = nullptr;                            ///< cublasCreate_v2
  Status (*destroy)(Handle) = nullptr;                            ///< cublasDestroy_v2
  Status (*set_stream)(Handle, cudaStream_t) = nullptr;           ///< cublasSetStream_v2
  Status (*set_workspace)(Handle, void*, std::size_t) = nullptr;  ///< cublasSetWorkspace_v2
  Status (*set_math_mode)(Handle, int) = nullptr;                 ///< cublasSetMathMode
  GemmStridedBatched<float>* sgemm = nullptr;                     ///< cublasSgemmStridedBatched
  GemmStridedBatched<double>* dgemm = nullptr;                    ///< cublasDgemmStridedBatched
  GemmStridedBatchedEx* gemm_ex = nullptr;                        ///< cublasGemmStridedBatchedEx
  std::size_t workspace_bytes = 0;                                ///< size for set_workspace
};

/// `libcublas.so.13` and `.12`, the runtime's own version first, then the name without a version.
[[nodiscard]] std::span<const char* const> library_names() noexcept;
/// Opens the first library of the list that exists, without ever closing it, and finds the
/// functions. Throws DeviceError: `cuBLAS: expected one of …, got none: <why>`, or the name of a
/// function that the library lacks.
[[nodiscard]] Functions open_library(std::span<const char* const> names);

/// Returns the functions that products use. The build chooses the source that defines it:
///   cublas_real.cpp   opens the library; throws as open_library, and the next call retries
///   cublas_fake.cu    the fake cuBLAS for emulated devices: the same functions as plain loops,
///                     column-major, with the library's checks of their arguments
[[nodiscard]] Functions library_functions();
/// True if a GPU has the library: it can be opened, which is tried once. False on emulated devices,
/// whose fake only runs if a program asks for it, or a test (cublas_fake.hpp).
[[nodiscard]] bool is_installed();

}  // namespace braid::cuda::cublas
