#pragma once
#include <braid/core/internal/philox.hpp>

#include "cuda/device/element.cuh"
#include "cuda/device/random.cuh"

// Whether dropout keeps an element: a function of the key and the element's index in the whole
// batch.
namespace braid::cuda {

struct DropKey {
  std::uint64_t seed, stream, threshold;
  BRAID_DEVICE bool keeps(std::uint32_t word) const { return word >= threshold; }
  BRAID_DEVICE bool keeps_element(std::uint64_t e) const {
    // selected by comparisons: an index would move the block to local memory
    const PhiloxBlock b = philox(seed, stream, e / 4);
    return keeps(e % 4 < 2 ? (e % 4 == 0 ? b.w[0] : b.w[1]) : (e % 4 == 2 ? b.w[2] : b.w[3]));
  }
};

}  // namespace braid::cuda
