#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/trace.hpp>
#include <braid/parallel/report.hpp>

// Converts spans to phases: what each device did at each moment of a step.
namespace braid::parallel {

/// An interval in which a device was in one phase; ns since the run began.
struct Piece {
  std::int64_t begin, end;
  trace::Phase phase;
};

/// Flattens the spans of one device and step: at each moment the innermost span (the one that began
/// last) counts. Cuts off what lies outside [begin, end].
[[nodiscard]] std::vector<Piece> flatten_spans(std::span<const trace::Record> spans, Device device,
                                               std::int64_t step, std::int64_t begin,
                                               std::int64_t end);

/// Returns the seconds of each phase; idle is the rest of `seconds`.
[[nodiscard]] PhaseSeconds sum_pieces(std::span<const Piece> pieces, double seconds);

/// Returns what a whole step waits for. A moment counts as compute if any device computes, else as
/// reduce, replicate, gather, scatter or optimizer, in this order, else as idle.
[[nodiscard]] PhaseSeconds critical_path(std::span<const std::vector<Piece>> devices,
                                         double seconds);

/// Computes steps, replicas, critical, recorded_seconds and overhead from run.spans.
void find_phases(MeasuredRun& run, double seconds_per_span);

[[nodiscard]] double median(std::vector<double> values) noexcept;

}  // namespace braid::parallel
