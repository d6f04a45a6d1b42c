#pragma once
#include <braid/core/kernel_args/gemm.hpp>
#include <braid/core/kernel_args/reduce.hpp>

namespace braid {

/// Returns the reduction that computes GemmArgs::sum_a, for engines whose matrix products do not
/// compute it in the same pass. Static: see cpu/simd/kernels.hpp.
[[nodiscard]] static ReduceArgs row_sums_of_a(const GemmArgs& args) {
  ReduceArgs sums{};
  sums.op = ReduceOp::sum;
  sums.dtype = args.dtype;
  sums.out = args.sum_a;
  sums.x = args.a;
  sums.scale = 1.0;
  const auto one_dim = [](Loop& loop, std::int64_t n, std::int64_t out, std::int64_t x) {
    loop.rank = 1;
    loop.n = loop.size[0] = n;
    loop.stride[0][0] = out, loop.stride[1][0] = x;
  };
  one_dim(sums.keep, args.m, 1, args.ta ? 1 : args.lda);
  one_dim(sums.over, args.k, 0, args.ta ? args.lda : 1);
  return sums;
}

}  // namespace braid
