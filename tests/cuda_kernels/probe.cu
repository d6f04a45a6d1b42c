#include <braid/core/internal/kernel_args/loop.hpp>

#include "cuda_kernels/probe.hpp"

#include "cuda/device/loop.cuh"
#include "cuda/device/run.cuh"

namespace kernel_test {

__global__ void probe_offsets_kernel(braid::cuda::DeviceLoop<2> loop, const std::int64_t* i,
                                     std::int64_t count, std::int64_t* out) {
  for (std::int64_t k = braid::cuda::grid_thread(); k < count; k += braid::cuda::grid_threads()) {
    const auto at = braid::cuda::offsets_of(loop, i[k]);
    out[2 * k] = at.at[0];
    out[2 * k + 1] = at.at[1];
  }
}

void probe_offsets(const braid::Loop& loop, const std::int64_t* i, std::int64_t count,
                   std::int64_t* out, braid::Stream& stream) {
  braid::cuda::run("probe_offsets", probe_offsets_kernel, braid::cuda::blocks_for(count, 64), 64,
                   stream, braid::cuda::make_loop<2>(loop), i, count, out);
}

}  // namespace kernel_test
