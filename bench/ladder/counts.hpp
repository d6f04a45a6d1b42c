#pragma once
#include <cstdint>

#include "ladder/trial.hpp"
#include "simt/profiler.hpp"

// The memory traffic of a step, counted by the emulation. A request is one load, store or cp.async
// of a warp.
namespace braid::ladder {

struct Counts {
  std::uint64_t global = 0;         ///< requests of global memory
  std::uint64_t sectors = 0;        ///< sectors of 32 bytes that they touch
  std::uint64_t least_sectors = 0;  ///< fewest sectors that could hold these bytes
  std::uint64_t shared = 0;         ///< requests of shared memory
  std::uint64_t passes = 0;         ///< passes over its 32 banks
  std::uint64_t least_passes = 0;
  [[nodiscard]] std::uint64_t conflicts() const { return passes - least_passes; }
};

[[nodiscard]] inline Counts sum_of(const simt::Profile& profile) {
  Counts sum;
  for (const simt::ProfileLine& line : profile.lines()) {
    (line.shared ? sum.shared : sum.global) += line.accesses;
    (line.shared ? sum.passes : sum.sectors) += line.cost;
    (line.shared ? sum.least_passes : sum.least_sectors) += line.ideal;
  }
  return sum;
}

/// Counts one run of the step.
template <class Trial>
[[nodiscard]] Counts count(const Step<typename Trial::Problem>& step, const Trial& trial) {
  const simt::Profile profile;
  step.launch(trial.problem(true), stream());
  stream().synchronize();
  return sum_of(profile);
}

/// The sizes for which the tests and docs/guides/ladder.md state exact counts.
inline SgemmTrial counted_sgemm() { return {128, 128, 64}; }
inline SoftmaxTrial counted_softmax() { return {64, 512}; }

}  // namespace braid::ladder
