#include <braid/core/internal/kernel_args/gemm.hpp>
#include <braid/kernels/cuda.hpp>

#include "cuda/cublas.hpp"
#include "cuda/errors.hpp"
#include "cuda/gemm_kinds.hpp"
#include "cuda/kernels.hpp"
#include "cuda/launch.hpp"

namespace braid::cuda {

void gemm_as_planned(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  void (*function)(const GemmArgs&, const GemmPlan&, Stream&) = nullptr;
  switch (args.dtype) {
    case DType::float32: function = &gemm_float32; break;
    case DType::float64: function = &gemm_float64; break;
    case DType::float16: function = &gemm_float16; break;
    case DType::bfloat16: function = &gemm_bfloat16; break;
    case DType::int32: function = &gemm_int32; break;
    case DType::int64: function = &gemm_int64; break;
    default:
      fail_dtype("matmul", "float32, float64, float16, bfloat16, int32 or int64", args.dtype);
  }
  if (args.m > 0 && args.n > 0 && args.batch > 0) function(args, plan, stream);
}

void gemm(const GemmArgs& args, Stream& stream) {
  const bool empty = args.m <= 0 || args.n <= 0 || args.batch <= 0;
  if (!empty && cublas_gemm(args, stream)) return;
  gemm_as_planned(args,
                  empty ? GemmPlan{} : plan_gemm(args, processors_of(stream), float32_precision()),
                  stream);
}

void gemm_pair(const GemmPairArgs& args, Stream& stream) {
  const GemmArgs &input = args.first, &weight = args.second;
  const auto tiny = [](const GemmArgs& g, bool ta) {
    return g.m > 0 && g.n > 0 && g.batch == 1 && g.ta == ta && !g.tb && is_tiny(g);
  };
  if (!tiny(input, false) || !tiny(weight, true) || input.dtype != weight.dtype ||
      gemm_engine() == GemmEngine::cublas) {
    gemm(input, stream);
    return gemm(weight, stream);
  }
  switch (input.dtype) {
    case DType::float32: return linear_backward_float32(args, stream);
    case DType::float64: return linear_backward_float64(args, stream);
    case DType::float16: return linear_backward_float16(args, stream);
    case DType::bfloat16: return linear_backward_bfloat16(args, stream);
    default: gemm(input, stream); gemm(weight, stream);
  }
}

}  // namespace braid::cuda
