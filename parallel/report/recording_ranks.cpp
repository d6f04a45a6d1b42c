// Ends the recordings of several processes together.
#include <algorithm>
#include <iterator>

#include <braid/core/error.hpp>
#include <braid/parallel/process_communicator.hpp>
#include <braid/parallel/report.hpp>

#include "process/collective_log.hpp"
#include "process/communicator.hpp"
#include "report/ranks.hpp"

namespace braid::parallel {
namespace {

constexpr const char kMark[] = "beginning";  // found again by its address

/// Sets the steps in which the collectives began.
void find_steps(RankPart& part) {
  struct Step {
    std::int64_t begin, end, number;
  };
  std::vector<Step> steps;  // sorted, as the spans are
  for (const trace::Record& r : part.spans)
    if (r.phase == trace::Phase::step) steps.push_back({r.begin, r.end, r.step});
  for (CollectiveSpan& c : part.collectives) {
    const std::int64_t at = c.begin - part.began;
    const auto after = std::upper_bound(steps.begin(), steps.end(), at,
                                        [](std::int64_t t, const Step& s) { return t < s.begin; });
    c.step = after != steps.begin() && at < std::prev(after)->end ? std::prev(after)->number : -1;
  }
}

/// The rank by which the collectives of this rank are kept.
int log_rank(const ProcessCommunicator& ranks) {
  const auto* const engine = dynamic_cast<const process::EngineCommunicator*>(&ranks);
  return engine != nullptr ? engine->world_rank() : ranks.rank();
}

}  // namespace

std::span<const RankRun> ranks_of(const MeasuredRun& run) noexcept {
  if (run.ranks == nullptr) return {};
  return *run.ranks;
}

CollectiveTotals totals_of(const RankRun& rank) noexcept {
  CollectiveTotals sum;
  for (const CollectiveSpan& c : rank.collectives) {
    sum.seconds += static_cast<double>(c.end - c.begin) * 1e-9;
    sum.waited += static_cast<double>(c.waited) * 1e-9;
    sum.bytes += static_cast<double>(c.bytes);
  }
  return sum;
}

// Spans count from the recording's beginning. Empty spans between readings of the clock say when
// that was.
void DataParallelReport::Recording::mark_beginning() {
  constexpr int kMarks = 8;
  marks_.push_back(trace::now());
  for (int i = 0; i < kMarks; ++i) {
    {
      const trace::Span mark(kMark, trace::Phase::step, Device());
    }
    marks_.push_back(trace::now());
  }
}

void DataParallelReport::Recording::take_marks() {
  std::vector<trace::Record> marks;
  const auto is_mark = [](const trace::Record& r) { return r.name == kMark; };
  std::copy_if(run_.spans.begin(), run_.spans.end(), std::back_inserter(marks), is_mark);
  std::erase_if(run_.spans, is_mark);
  if (marks.size() + 1 != marks_.size()) return;  // there was no memory for one
  std::int64_t least = -1;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    // Both begin and end lie between the two readings.
    const std::int64_t from = marks_[i] - marks[i].begin, to = marks_[i + 1] - marks[i].end;
    if (least >= 0 && to - from >= least) continue;
    least = to - from;
    began_ = from + least / 2;
    began_uncertainty_ = std::max<std::int64_t>(0, least) / 2 + 1;
  }
}

void DataParallelReport::Recording::finish(ProcessCommunicator& ranks) {
  if (!recording_) return;
  if (ranks.size() == 1) return finish();
  // A rank that fails still takes part, so that the others do not wait for it.
  std::exception_ptr failed;
  RankPart part{.devices = run_.devices};
  try {
    finish();
    if (began_ == 0) throw Error("DataParallelReport: expected to know when it began, got no time");
    const MeasuredRun& run = report_.runs_.back();
    process::CollectiveLog log = process::take_collectives(log_rank(ranks));
    part = {began_,    began_uncertainty_,   run.devices,
            run.spans, std::move(log.spans), run.dropped + log.dropped};
    find_steps(part);
  } catch (...) {
    failed = std::current_exception();
  }
  std::vector<RankRun> all = gather_ranks(ranks, part, trace::now);
  if (failed) std::rethrow_exception(failed);
  if (ranks.rank() == 0)
    report_.runs_.back().ranks = std::make_shared<const std::vector<RankRun>>(std::move(all));
}

}  // namespace braid::parallel
