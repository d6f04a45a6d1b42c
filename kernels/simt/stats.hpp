#pragma once
#include <cstdint>

namespace braid::simt {

/// What the emulation has executed since the process started.
struct Stats {
  std::uint64_t grids = 0, blocks = 0, threads = 0;
  std::uint64_t switches = 0;  ///< from one fiber to another
  std::uint64_t barriers = 0;  ///< __syncthreads, counted once per block
  std::uint64_t warp_ops = 0;  ///< shuffles, votes, mma, …, counted once per warp
  std::uint64_t mma = 0;       ///< those of warp_ops that multiply on tensor cores
  std::uint64_t accesses = 0;  ///< accesses that the checker has checked
};
[[nodiscard]] Stats stats();

}  // namespace braid::simt
