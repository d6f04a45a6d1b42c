#pragma once
#include <braid/core/internal/kernel_args/random.hpp>

#include "cuda/device/element.cuh"

// The seed and the stream of random ops, also of those in a graph.
namespace braid::cuda {

/// What a random op uses: the recorded seed and stream, or, in a replay of a recorded step, those
/// that the table of the graph makes of them.
struct RandomOf {
  std::uint64_t seed, stream;
  BRAID_DEVICE RandomOf(std::uint64_t recorded_seed, std::uint64_t recorded_stream,
                        const RandomShift* shift)
      : seed(shift == nullptr ? recorded_seed : shift->seed),
        stream(shift == nullptr ? recorded_stream : recorded_stream + shift->streams) {}
};

}  // namespace braid::cuda
