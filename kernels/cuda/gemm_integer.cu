#include "cuda/device/gemm.cuh"
#include "cuda/gemm_kinds.hpp"

// Integer products are taken modulo 2^bits, hence in unsigned numbers, whose overflow is no error.
namespace braid::cuda {

void gemm_int32(const GemmArgs& args, Stream& stream) { launch_gemm<Element<std::uint32_t, std::uint32_t, DType::int32>, PlainTile>(args, stream); }
void gemm_int64(const GemmArgs& args, Stream& stream) { launch_gemm<Element<std::uint64_t, std::uint64_t, DType::int64>, PlainTile>(args, stream); }

}  // namespace braid::cuda
