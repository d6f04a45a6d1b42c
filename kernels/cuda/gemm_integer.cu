#include <braid/core/kernel_args/gemm.hpp>

#include "cuda/device/gemm_small.cuh"
#include "cuda/gemm_kinds.hpp"

// Integer products are taken modulo 2^bits, hence in unsigned numbers, whose overflow is no error.
// One tile serves for both of the plan: for them the time to compile counts for more than the last
// of the speed.
namespace braid::cuda {

template <class E> void gemm_integer(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  launch_gemm<E>(args, plan, stream, [&](const GemmParams<E>& p) {
    launch_tiles<E, Square32>(p, args.ta, args.tb, stream);
  });
}

void gemm_int32(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  gemm_integer<Element<std::uint32_t, std::uint32_t, DType::int32>>(args, plan, stream);
}
void gemm_int64(const GemmArgs& args, const GemmPlan& plan, Stream& stream) {
  gemm_integer<Element<std::uint64_t, std::uint64_t, DType::int64>>(args, plan, stream);
}

}  // namespace braid::cuda
