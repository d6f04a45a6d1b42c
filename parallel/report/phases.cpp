#include "report/phases.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace braid::parallel {
namespace {

using trace::Phase;

double seconds_of(std::int64_t ns) noexcept { return static_cast<double>(ns) * 1e-9; }

double& part(PhaseSeconds& seconds, Phase phase) noexcept {
  switch (phase) {
    case Phase::scatter: return seconds.scatter;
    case Phase::replicate: return seconds.replicate;
    case Phase::compute: return seconds.compute;
    case Phase::gather: return seconds.gather;
    case Phase::reduce: return seconds.reduce;
    case Phase::optimizer: return seconds.optimizer;
    case Phase::step: break;
  }
  return seconds.idle;
}

void add_bytes(ReplicaStep& step, const trace::Record& r) noexcept {
  switch (r.phase) {
    case Phase::scatter: step.scatter_bytes += r.bytes; break;
    case Phase::replicate:
      step.replicate_bytes += r.bytes;
      step.cached_bytes += r.cached_bytes;
      break;
    case Phase::gather: step.gather_bytes += r.bytes; break;
    case Phase::reduce: step.reduce_bytes += r.bytes; break;
    default: break;
  }
}

/// Returns the median of each phase, so that one disturbed step does not count.
PhaseSeconds medians(std::span<const PhaseSeconds> steps) {
  PhaseSeconds result;
  constexpr std::array fields = {&PhaseSeconds::scatter, &PhaseSeconds::replicate,
                                 &PhaseSeconds::compute, &PhaseSeconds::gather,
                                 &PhaseSeconds::reduce,  &PhaseSeconds::optimizer,
                                 &PhaseSeconds::idle};
  for (double PhaseSeconds::* const field : fields) {
    std::vector<double> values;
    for (const PhaseSeconds& s : steps) values.push_back(s.*field);
    result.*field = median(std::move(values));
  }
  return result;
}

}  // namespace

double median(std::vector<double> values) noexcept {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<Piece> flatten_spans(std::span<const trace::Record> spans, Device device,
                                 std::int64_t step, std::int64_t begin, std::int64_t end) {
  struct Edge {
    std::int64_t at;
    bool ends;
    std::size_t span;
  };
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const trace::Record& r = spans[i];
    if (r.device != device || r.step != step || r.phase == Phase::step) continue;
    const std::int64_t from = std::max(r.begin, begin), to = std::min(r.end, end);
    if (from >= to) continue;
    edges.push_back({from, false, i});
    edges.push_back({to, true, i});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  std::set<std::pair<std::int64_t, std::size_t>> open;  // by beginning; the last is innermost
  std::vector<Piece> pieces;
  std::int64_t at = begin;
  for (const Edge& edge : edges) {
    if (edge.at > at && !open.empty()) {
      const Phase phase = spans[open.rbegin()->second].phase;
      if (!pieces.empty() && pieces.back().end == at && pieces.back().phase == phase)
        pieces.back().end = edge.at;
      else pieces.push_back({at, edge.at, phase});
    }
    at = edge.at;
    const std::pair key{spans[edge.span].begin, edge.span};
    if (edge.ends) open.erase(key);
    else open.insert(key);
  }
  return pieces;
}

PhaseSeconds sum_pieces(std::span<const Piece> pieces, double seconds) {
  PhaseSeconds sum;
  for (const Piece& piece : pieces) part(sum, piece.phase) += seconds_of(piece.end - piece.begin);
  sum.idle = std::max(0.0, seconds - sum.total());
  return sum;
}

PhaseSeconds critical_path(std::span<const std::vector<Piece>> devices, double seconds) {
  constexpr std::array order = {Phase::compute, Phase::reduce,  Phase::replicate,
                                Phase::gather,  Phase::scatter, Phase::optimizer};
  // At each time: the number of devices that begin a phase minus those that end it.
  std::map<std::int64_t, std::array<int, trace::kPhases>> changes;
  for (const std::vector<Piece>& pieces : devices)
    for (const Piece& piece : pieces) {
      ++changes[piece.begin][static_cast<std::size_t>(piece.phase)];
      --changes[piece.end][static_cast<std::size_t>(piece.phase)];
    }
  PhaseSeconds sum;
  std::array<int, trace::kPhases> busy{};
  std::int64_t at = 0;
  for (const auto& [moment, change] : changes) {
    const auto phase = std::find_if(order.begin(), order.end(),
                                    [&](Phase p) { return busy[static_cast<std::size_t>(p)] > 0; });
    if (phase != order.end()) part(sum, *phase) += seconds_of(moment - at);
    for (std::size_t i = 0; i < busy.size(); ++i) busy[i] += change[i];
    at = moment;
  }
  sum.idle = std::max(0.0, seconds - sum.total());
  return sum;
}

void find_phases(MeasuredRun& run, double seconds_per_span) {
  std::vector<PhaseSeconds> paths;
  std::vector<double> lengths;
  std::map<std::int64_t, std::vector<trace::Record>> steps;
  for (const trace::Record& r : run.spans) steps[r.step].push_back(r);
  double busiest = 0;
  for (const trace::Record& whole : run.spans) {
    if (whole.phase != Phase::step) continue;
    const double seconds = seconds_of(whole.end - whole.begin);
    const std::vector<trace::Record>& spans = steps[whole.step];
    std::vector<std::vector<Piece>> pieces;
    for (std::size_t i = 0; i < run.devices.size(); ++i) {
      pieces.push_back(flatten_spans(spans, run.devices[i], whole.step, whole.begin, whole.end));
      ReplicaStep row{.step = whole.step,
                      .replica = static_cast<int>(i),
                      .device = run.devices[i],
                      .seconds = sum_pieces(pieces.back(), seconds)};
      for (const trace::Record& r : spans)
        if (r.device == run.devices[i]) add_bytes(row, r);
      run.replicas.push_back(row);
    }
    paths.push_back(critical_path(pieces, seconds));
    lengths.push_back(seconds);
    std::map<std::int32_t, std::size_t> of_thread;
    for (const trace::Record& r : spans)
      busiest = std::max(busiest, static_cast<double>(++of_thread[r.thread]));
  }
  run.steps = static_cast<std::int64_t>(paths.size());
  if (paths.empty()) return;
  // Left out: the first step allocates memory and starts threads and caches.
  const std::ptrdiff_t first = paths.size() > 1 ? 1 : 0;
  run.critical = medians(std::span(paths).subspan(static_cast<std::size_t>(first)));
  run.recorded_seconds = median({lengths.begin() + first, lengths.end()});
  // The medians of the phases need not add up to the median of the step.
  if (const double total = run.critical.total(); total > 0)
    run.critical *= run.recorded_seconds / total;
  if (run.recorded_seconds > 0) run.overhead = busiest * seconds_per_span / run.recorded_seconds;
}

}  // namespace braid::parallel
