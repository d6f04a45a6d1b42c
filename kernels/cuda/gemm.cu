#include "cuda/cublas.hpp"
#include "cuda/errors.hpp"
#include "cuda/gemm_kinds.hpp"
#include "cuda/kernels.hpp"
#include "cuda/launch.hpp"

namespace braid::cuda {

void gemm_as_planned(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  void (*function)(const GemmArgs&, const GemmPlan&, Stream&) = nullptr;
  switch (args.dtype) {
    case DType::float32:
      function = &gemm_float32;
      break;
    case DType::float64:
      function = &gemm_float64;
      break;
    case DType::float16:
      function = &gemm_float16;
      break;
    case DType::bfloat16:
      function = &gemm_bfloat16;
      break;
    case DType::int32:
      function = &gemm_int32;
      break;
    case DType::int64:
      function = &gemm_int64;
      break;
    default:
      fail_dtype("matmul", "float32, float64, float16, bfloat16, int32 or int64", args.dtype);
  }
  if (args.m > 0 && args.n > 0 && args.batch > 0) function(args, plan, stream);
}

void gemm(const GemmArgs& args, Stream& stream) {
  const bool empty = args.m <= 0 || args.n <= 0 || args.batch <= 0;
  if (!empty && cublas_gemm(args, stream)) return;
  gemm_as_planned(args, empty ? GemmPlan{} : plan_gemm(args, processors_of(stream)), stream);
}

}  // namespace braid::cuda
