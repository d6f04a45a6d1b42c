#include <braid/core/kernel_args/optim.hpp>

#include "kernels/kernel_support.hpp"
#if defined(BRAID_CUDA_SIMT)
#include "simt/stats.hpp"

using namespace kernel_test;

TEST_CASE("cuda adam: hundreds of parameters in one launch", "[cuda_kernels][optim]") {
  NEEDS_DEVICE;
  for (const std::int64_t count : {1, 61, 601}) {
    Buffer states(DType::float32, 4 * 16 * count);
    states.fill(0.5);
    std::vector<braid::OptimItem> items;
    for (std::int64_t i = 0; i < count; ++i) {
      float* const at = static_cast<float*>(states.data()) + 64 * i;
      items.push_back({at, at + 16, at + 32, at + 48, 16});
    }
    braid::AdamArgs args{};
    args.dtype = DType::float32, args.items = items.data(), args.count = count;
    args.lr = 0.01, args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-8, args.step = 3;
    stream().synchronize();
    const auto before = braid::simt::stats().grids;
    kernels().adam(args, stream());
    stream().synchronize();
    CHECK(braid::simt::stats().grids - before == (count == 601 ? 2u : 1u));
  }
}
#endif
