#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <braid/parallel/rank_run.hpp>

// What the communicators of this process did while a trace::Recording exists.
namespace braid::parallel::process {

/// The most collectives that are kept of a rank.
inline constexpr std::size_t kMostCollectives = 65536;

/// The collectives of one rank; times on the clock of trace::now().
struct CollectiveLog {
  std::vector<CollectiveSpan> spans;
  std::uint64_t dropped = 0;  // there was no room
};

/// Forgets what earlier recordings left.
void clear_collectives() noexcept;
/// Adds a span of a rank of the world. Never throws: a span that finds no memory is dropped.
void log_collective(int rank, CollectiveSpan span) noexcept;
/// Removes and returns the spans of the rank.
[[nodiscard]] CollectiveLog take_collectives(int rank);

}  // namespace braid::parallel::process
