#include <braid/core/kernel_args/gemm.hpp>

#include "cuda/device/gemm_small.cuh"
#include "cuda/gemm_kinds.hpp"

// Integer products are computed modulo 2^bits, in unsigned types, whose overflow is defined. One
// tile is used for both tiles of the plan, because for integers compile time matters more than the
// last of the speed.
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
