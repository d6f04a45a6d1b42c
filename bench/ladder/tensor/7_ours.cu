#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cuda/gemm_kinds.hpp"
#include "cuda/launch.hpp"
#include "ladder/problems.hpp"

// Step 7: the engine's own kernel, kernels/cuda/device/gemm_mma.cuh: step 6 as a template.
// Gains  Four stages. Two tile sizes, chosen by the shape of the product and the GPU, and a long k
//        that is cut into parts. Results go through shared memory, so that a warp writes whole
//        sectors. float16 and float32 as TF32; bias, activation and db in the same pass;
//        convolutions by the same loop.
namespace braid::ladder {

void tensor_ours(const Product& g, Stream& stream) {
  GemmArgs args{};
  args.dtype = DType::bfloat16;
  args.ta = g.use == Use::weight, args.tb = g.use == Use::forward;
  args.m = g.m, args.n = g.n, args.k = g.k, args.batch = 1;
  args.lda = args.ta ? g.m : g.k, args.ldb = args.tb ? g.k : g.n, args.ldc = g.n;
  args.a = g.a, args.b = g.b, args.c = g.c;
  // planned for one multiprocessor, which any product fills
  cuda::gemm_as_planned(args, cuda::plan_gemm(args, g.large ? 1 : cuda::processors_of(stream)),
                        stream);
}

}  // namespace braid::ladder
