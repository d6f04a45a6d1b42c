#include "cuda/device/gemm_small.cuh"
#include "cuda/gemm_kinds.hpp"

// Integer products are taken modulo 2^bits, hence in unsigned numbers, whose overflow is no error.
namespace braid::cuda {

void gemm_int32(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  launch_square<Element<std::uint32_t, std::uint32_t, DType::int32>>(args, plan, stream);
}
void gemm_int64(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  launch_square<Element<std::uint64_t, std::uint64_t, DType::int64>>(args, plan, stream);
}

}  // namespace braid::cuda
