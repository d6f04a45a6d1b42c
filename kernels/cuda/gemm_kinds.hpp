#pragma once
#include <braid/core/kernel_table.hpp>

// gemm.cu by dtype, in files of their own so that they compile side by side. m, n and batch are above 0.
namespace braid::cuda {

void gemm_float32(const GemmArgs& args, Stream& stream);
void gemm_float64(const GemmArgs& args, Stream& stream);
void gemm_float16(const GemmArgs& args, Stream& stream);
void gemm_bfloat16(const GemmArgs& args, Stream& stream);
void gemm_int32(const GemmArgs& args, Stream& stream);
void gemm_int64(const GemmArgs& args, Stream& stream);

}  // namespace braid::cuda
