#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

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

/// A step's line of the tables that the benchmark prints and docs/guides/ladder.md shows.
[[nodiscard]] inline std::string line_of(const char* step, bool right, const Counts& c) {
  const auto each = [](std::uint64_t cost, std::uint64_t requests) {
    return requests == 0 ? 0.0 : static_cast<double>(cost) / static_cast<double>(requests);
  };
  const auto whole = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
  char line[128];
  std::snprintf(line, sizeof line, "%-14s %-5s %9llu %8llu %5.1f %6.1f %9llu %8llu %5.1f %10llu",
                step, right ? "yes" : "NO", whole(c.global), whole(c.sectors),
                each(c.sectors, c.global), each(c.least_sectors, c.global), whole(c.shared),
                whole(c.passes), each(c.passes, c.shared), whole(c.conflicts()));
  return line;
}

/// The sizes for which the tests and docs/guides/ladder.md state exact counts.
inline SgemmTrial counted_sgemm() { return {128, 128, 64}; }
inline TensorTrial counted_tensor(Use use) { return {128, 128, 64, use}; }
inline SoftmaxTrial counted_softmax() { return {64, 512}; }

}  // namespace braid::ladder
