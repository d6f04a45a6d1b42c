#include "cuda/errors.hpp"
#include "cuda/gemm_kinds.hpp"
#include "cuda/kernels.hpp"

namespace braid::cuda {

void gemm(const GemmArgs& args, Stream& stream) {
  void (*function)(const GemmArgs&, Stream&) = nullptr;
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
  if (args.m > 0 && args.n > 0 && args.batch > 0) function(args, stream);
}

}  // namespace braid::cuda
