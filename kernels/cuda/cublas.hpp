#pragma once
#include <braid/core/kernel_args/gemm.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

/// The gemm kernel by cuBLAS, if that is the engine (see set_gemm_engine). Row-major operands are
/// passed as transposed column-major ones: C = A B as Cᵀ = Bᵀ Aᵀ. A bias is copied to C's rows
/// first; sum_a and the activation are separate passes after the product. Returns false if another
/// engine has to compute it: integers, k == 0, sizes above 2³¹, leading dims shorter than a row.
/// Results are those of cuBLAS: float32 without TF32, float16 and bfloat16 summed in float32.
/// Throws DeviceError (no library), ArgumentError (BRAID_GEMM), CudaError with the name of the
/// library's status, and OutOfMemoryError.
[[nodiscard]] bool cublas_gemm(const GemmArgs& args, Stream& stream);

}  // namespace braid::cuda
