#pragma once
#include "simt/simt.hpp"

namespace bench::gpu {

/// A kernel that does nothing, one warp: what a launch costs by itself.
cudaError_t launch_empty(cudaStream_t stream);

}  // namespace bench::gpu
