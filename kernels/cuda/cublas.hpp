#pragma once
#include <braid/core/kernel_args/gemm.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

/// The gemm entry by cuBLAS, if that is the engine (see set_gemm_engine): row-major operands as its
/// column-major ones turned, C = A B as Cᵀ = Bᵀ Aᵀ. A bias is copied to C's rows first; sum_a and
/// the activation are passes of their own, after it. False if another engine has to do it:
/// integers, k == 0, sizes above 2³¹, leading dims that overlap rows. Numbers are those of cuBLAS:
/// float32 without TF32, float16 and bfloat16 summed in float32. Throws DeviceError (no library),
/// ArgumentError (BRAID_GEMM), CudaError named after the library's status, OutOfMemoryError.
[[nodiscard]] bool cublas_gemm(const GemmArgs& args, Stream& stream);

}  // namespace braid::cuda
