#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <braid/core/trace.hpp>

// What the ranks of several processes recorded, for a DataParallelReport.
namespace braid::parallel {

/// A collective between processes, as one rank saw it. Times in ns since the run began on rank 0.
struct CollectiveSpan {
  std::string name;         ///< "all_reduce(bucket 3, 25 MiB)"
  std::uint64_t call = 0;   ///< its number in the communicator, from 1 on, the same on all ranks
  std::uint64_t bytes = 0;  ///< of the rank's input
  std::int64_t step = -1;   ///< in which it began; -1: none
  std::int64_t begin = 0, end = 0;
  /// ns from the begin until all ranks had entered; 0 without ProcessOptions::check_collectives
  std::int64_t waited = 0;
};

/// What one rank of several recorded, on the clock of rank 0.
struct RankRun {
  int rank = 0;
  /// ns: the rank's clock minus that of rank 0 at the end of the run, and how far off it may be
  std::int64_t clock_offset = 0, clock_uncertainty = 0;
  std::vector<Device> devices = {};
  std::vector<trace::Record> spans = {};  ///< times in ns since the run began on rank 0
  std::vector<CollectiveSpan> collectives = {};
  std::uint64_t dropped = 0;                    ///< spans lost because a buffer was full
  std::shared_ptr<const void> names = nullptr;  ///< keeps the names in `spans` alive
};

}  // namespace braid::parallel
