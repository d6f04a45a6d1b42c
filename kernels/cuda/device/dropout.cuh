#pragma once
#include <braid/core/philox.hpp>

#include "cuda/device/element.cuh"

// Which elements dropout keeps: a function of the key and the element's number in the whole batch.
namespace braid::cuda {

struct DropKey {
  std::uint64_t seed, stream, threshold;
  BRAID_DEVICE bool keeps(std::uint32_t word) const { return word >= threshold; }
  BRAID_DEVICE bool keeps_element(std::uint64_t e) const {
    // chosen by comparisons: an index would put the block in memory
    const PhiloxBlock b = philox(seed, stream, e / 4);
    return keeps(e % 4 < 2 ? (e % 4 == 0 ? b.w[0] : b.w[1]) : (e % 4 == 2 ? b.w[2] : b.w[3]));
  }
};

}  // namespace braid::cuda
