#pragma once
#include <braid/core/kernel_args/gemm.hpp>

#include "cuda/gemm_plan.hpp"

namespace braid { class Stream; }

// gemm.cu by dtype, in separate files so that they compile in parallel. m, n and batch must be
// positive.
namespace braid::cuda {

void gemm_float32(const GemmArgs& args, const GemmPlan& plan, Stream& stream);
void gemm_float64(const GemmArgs& args, const GemmPlan& plan, Stream& stream);
void gemm_float16(const GemmArgs& args, const GemmPlan& plan, Stream& stream);
void gemm_bfloat16(const GemmArgs& args, const GemmPlan& plan, Stream& stream);
void gemm_int32(const GemmArgs& args, const GemmPlan& plan, Stream& stream);
void gemm_int64(const GemmArgs& args, const GemmPlan& plan, Stream& stream);

/// dx, and dW with db, of a tiny layer in one launch.
void linear_backward_float32(const GemmPairArgs& args, Stream& stream);
void linear_backward_float64(const GemmPairArgs& args, Stream& stream);
void linear_backward_float16(const GemmPairArgs& args, Stream& stream);
void linear_backward_bfloat16(const GemmPairArgs& args, Stream& stream);

/// gemm with a given plan, for tests and tuning. Throws DTypeError.
void gemm_as_planned(const GemmArgs& args, const GemmPlan& plan, Stream& stream);

}  // namespace braid::cuda
