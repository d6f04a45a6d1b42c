#pragma once
#include "cuda/device/run.cuh"
#include "simt/ptx.hpp"

// How the blocks of a kernel learn which of them is the last one, so that it can join what the
// others have written: no second launch, and no block waits for another one.
namespace braid::cuda {

/// For all threads of a block, after which they are synchronized: true in the last of `blocks`
/// blocks that arrive at a counter. That block may read what the threads that arrived first, and
/// those that a barrier had synchronized with them, wrote before. The last block sets the counter
/// back to zero.
BRAID_DEVICE bool arrives_last(unsigned* counter, unsigned blocks) {
  bool last = false;
  if (threadIdx.x == 0 && threadIdx.y == 0)
    last = simt::inc_acq_rel(counter, blocks - 1) == blocks - 1;
  return __syncthreads_or(last) != 0;
}

}  // namespace braid::cuda
