#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

#include "ladder/trial.hpp"
#include "simt/profiler.hpp"
#include "simt/stats.hpp"

// What a step asks of memory and of the issue slots, counted by the emulation. A request is one
// load, store or cp.async of a warp.
namespace braid::ladder {

struct Counts {
  std::uint64_t global = 0;         ///< requests of global memory
  std::uint64_t sectors = 0;        ///< sectors of 32 bytes that they touch
  std::uint64_t least_sectors = 0;  ///< fewest sectors that could hold these bytes
  std::uint64_t shared = 0;         ///< requests of shared memory
  std::uint64_t passes = 0;         ///< passes over its 32 banks
  std::uint64_t least_passes = 0;
  /// mma.sync, or the multiply-adds that the product needs without them, which the emulation does
  /// not see; 0 for softmax
  std::uint64_t multiplies = 0;
  [[nodiscard]] std::uint64_t conflicts() const { return passes - least_passes; }
  /// Instructions of a warp for memory and multiplies: each takes an issue slot. Those for
  /// addresses and loops are not counted.
  [[nodiscard]] std::uint64_t slots() const { return global + shared + multiplies; }
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
  const std::uint64_t before = simt::stats().mma;
  step.launch(trial.problem(true), stream());
  stream().synchronize();
  Counts counts = sum_of(profile);
  const std::uint64_t mma = simt::stats().mma - before;
  counts.multiplies = mma > 0 ? mma : trial.multiplies();
  return counts;
}

/// A step's line of the tables that the benchmark prints and docs/guides/ladder.md shows.
[[nodiscard]] inline std::string line_of(const char* step, bool right, const Counts& c) {
  const auto each = [](std::uint64_t cost, std::uint64_t requests) {
    return requests == 0 ? 0.0 : static_cast<double>(cost) / static_cast<double>(requests);
  };
  const auto whole = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
  char line[128];
  std::snprintf(line, sizeof line,
                "%-14s %-5s %9llu %8llu %5.1f %6.1f %9llu %8llu %5.1f %10llu %7llu", step,
                right ? "yes" : "NO", whole(c.global), whole(c.sectors), each(c.sectors, c.global),
                each(c.least_sectors, c.global), whole(c.shared), whole(c.passes),
                each(c.passes, c.shared), whole(c.conflicts()), whole(c.slots()));
  return line;
}

/// The sizes for which the tests and docs/guides/ladder.md state exact counts.
inline SgemmTrial counted_sgemm() { return {128, 128, 64}; }
inline TensorTrial counted_tensor(Use use) { return {128, 128, 64, use}; }
inline SoftmaxTrial counted_softmax() { return {64, 512}; }

}  // namespace braid::ladder
