#pragma once
#include <braid/core/internal/kernel_args/gemm.hpp>
#include <braid/core/precision.hpp>
#include <braid/kernels/cuda.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

/// The gemm kernel by cuBLAS, if the engine says so (see set_gemm_engine). Row-major operands are
/// passed as transposed column-major ones: C = A B as Cᵀ = Bᵀ Aᵀ. A bias is copied to C's rows
/// first; sum_a and the epilogue are separate passes after the product. Returns false if another
/// engine has to compute it: integers, float32 with tf32x3, k == 0, sizes above 2³¹, leading dims
/// shorter than a row, and with GemmEngine::automatic also tiny products and, of float16 and
/// bfloat16, those with a bias or a matrix to add. Results are those of cuBLAS: float32 without
/// TF32 unless set_float32_precision says so, float16 and bfloat16 summed in float32; it rounds
/// them before it adds a bias or a matrix, and after.
/// Throws DeviceError (no library), ArgumentError (BRAID_GEMM), CudaError with the name of the
/// library's status, and OutOfMemoryError. With GemmEngine::automatic, a library that cannot make a
/// handle for the device is a warning instead, and false is returned.
[[nodiscard]] bool cublas_gemm(const GemmArgs& args, Stream& stream);

/// Makes what the first product by cuBLAS on the stream's device would make, if products may use
/// it. A recording calls it before it begins: within one, cuBLAS may not allocate. Throws as
/// cublas_gemm.
void prepare_cublas(Stream& stream);

/// Whether cuBLAS computes the products of an engine and a dtype, with a precision of float32.
/// `adds`: it would add them to C. `opens` says whether it can be opened; it is called only where
/// that decides.
[[nodiscard]] bool cublas_computes(GemmEngine engine, DType dtype, Float32Precision precision,
                                   bool adds, bool (*opens)());

}  // namespace braid::cuda
