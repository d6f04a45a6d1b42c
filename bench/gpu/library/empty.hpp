#pragma once
#include "simt/simt.hpp"

namespace bench::gpu {

/// Launches a kernel of one warp that does nothing, to measure the cost of a launch.
cudaError_t launch_empty(cudaStream_t stream);

}  // namespace bench::gpu
