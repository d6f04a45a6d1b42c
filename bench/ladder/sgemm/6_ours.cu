#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cuda/gemm_kinds.hpp"
#include "cuda/launch.hpp"
#include "ladder/problems.hpp"

// Step 6: the engine's own kernel, kernels/cuda/device/gemm.cuh: step 5 as a template, with 16 x 8
// elements for each thread, so that it reads a quarter less of shared memory.
// Gains  Six tile sizes, chosen by the shape of the product and the GPU (gemm_plan.cpp): 4096 x
//        4096 fills a large GPU with blocks of 128 x 128, 64 x 4096 does not. A long k is split if
//        C alone has too few tiles. All four layouts of A and B, batches, six dtypes; bias,
//        activation and the row sums of A in the same pass. Blocks are ordered in groups of eight
//        rows of tiles, so that neighbouring blocks find A and B in the L2 cache.
namespace braid::ladder {

void sgemm_ours(const Sgemm& g, Stream& stream) {
  GemmArgs args{};
  args.dtype = DType::float32;
  args.m = g.m, args.n = g.n, args.k = g.k, args.batch = 1;
  args.lda = g.k, args.ldb = g.n, args.ldc = g.n;
  args.a = g.a, args.b = g.b, args.c = g.c;
  // planned for one multiprocessor, which any product fills
  cuda::gemm_as_planned(args, cuda::plan_gemm(args, g.large ? 1 : cuda::processors_of(stream)),
                        stream);
}

}  // namespace braid::ladder
