#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/trace.hpp>
#include <braid/parallel/report.hpp>

// From spans to phases: what each device did at each moment of a step.
namespace braid::parallel {

/// A device did one thing; ns since the run began.
struct Piece {
  std::int64_t begin, end;
  trace::Phase phase;
};

/// The spans of one device and step without overlaps: at each moment the innermost (the one that
/// began last) counts. What lies outside [begin, end] is cut off.
[[nodiscard]] std::vector<Piece> flatten_spans(std::span<const trace::Record> spans, Device device,
                                               std::int64_t step, std::int64_t begin,
                                               std::int64_t end);

/// Seconds of each phase; idle is what is left of `seconds`.
[[nodiscard]] PhaseSeconds sum_pieces(std::span<const Piece> pieces, double seconds);

/// What a whole step waits for: at each moment compute, if any device computes, else reduce,
/// replicate, gather, scatter, optimizer, in this order, else idle.
[[nodiscard]] PhaseSeconds critical_path(std::span<const std::vector<Piece>> devices,
                                         double seconds);

/// Fills steps, replicas, critical, recorded_seconds and overhead from run.spans.
void find_phases(MeasuredRun& run, double seconds_per_span);

[[nodiscard]] double median(std::vector<double> values) noexcept;

}  // namespace braid::parallel
