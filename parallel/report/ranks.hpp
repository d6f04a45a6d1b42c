#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <braid/parallel/process_communicator.hpp>
#include <braid/parallel/rank_run.hpp>
#include <braid/parallel/report.hpp>

// Brings what several ranks recorded to rank 0, on one time axis.
namespace braid::parallel {

/// A rank's clock minus the clock of rank 0, in ns. The true value is at most `uncertainty` away.
struct ClockOffset {
  std::int64_t offset = 0, uncertainty = 0;
};

/// A monotonic clock in ns; tests plant one that is shifted.
using HostClock = std::function<std::int64_t()>;

/// Measures the clocks of all ranks by `rounds` exchanges with rank 0 each; the one with the least
/// round trip counts. All ranks call it. Rank 0 gets one offset for each rank, the others none.
[[nodiscard]] std::vector<ClockOffset> measure_clocks(ProcessCommunicator& ranks,
                                                      const HostClock& clock, int rounds = 16);

/// True for a time that a monotonic clock can have: 36 years at most, so that sums do not overflow.
[[nodiscard]] constexpr bool is_time(std::int64_t t) noexcept {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  return t > -kMost && t < kMost;
}

/// What one rank recorded: spans in ns since `began`, collectives in ns of its clock.
struct RankPart {
  std::int64_t began = 0;
  std::int64_t began_uncertainty = 0;
  std::vector<Device> devices = {};
  std::vector<trace::Record> spans = {};
  std::vector<CollectiveSpan> collectives = {};
  std::uint64_t dropped = 0;
};

/// The most bytes that a rank may send.
inline constexpr std::size_t kMostRankBytes = std::size_t{256} << 20;

/// Returns the part as bytes. What does not fit in `most` bytes is left out and counts as dropped.
[[nodiscard]] std::string encode_rank(const RankPart& part, std::size_t most = kMostRankBytes);
/// Checks and reads the bytes of a rank. The times become ns since `began`, which is when the run
/// began on rank 0, on rank 0's clock. Throws CommError for bytes that encode_rank cannot have
/// written.
[[nodiscard]] RankRun decode_rank(std::string_view bytes, int rank, ClockOffset clock,
                                  std::int64_t began);

/// Gathers the parts of all ranks on rank 0; the others get an empty list. All ranks call it, and
/// all throw CommError if rank 0 refuses what one of them sent.
[[nodiscard]] std::vector<RankRun> gather_ranks(ProcessCommunicator& ranks, const RankPart& part,
                                                const HostClock& clock);

/// The ranks of a run of several processes, else none.
[[nodiscard]] std::span<const RankRun> ranks_of(const MeasuredRun& run) noexcept;

/// The collectives of a rank together.
struct CollectiveTotals {
  double seconds = 0, waited = 0, bytes = 0;
};
[[nodiscard]] CollectiveTotals totals_of(const RankRun& rank) noexcept;

}  // namespace braid::parallel
