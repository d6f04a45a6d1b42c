// Ends the recordings of several processes together.
#include <algorithm>

#include <braid/core/error.hpp>
#include <braid/parallel/process_communicator.hpp>
#include <braid/parallel/report.hpp>

#include "process/collective_log.hpp"
#include "report/ranks.hpp"

namespace braid::parallel {
namespace {

constexpr const char kMark[] = "beginning";  // found again by its address

/// The step of rank 0's own devices in which the moment lies.
std::int64_t step_at(const std::vector<trace::Record>& spans, std::int64_t at) {
  for (const trace::Record& r : spans)
    if (r.phase == trace::Phase::step && r.begin <= at && at < r.end) return r.step;
  return -1;
}

}  // namespace

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
    process::CollectiveLog log = process::take_collectives(ranks.rank());
    part = {began_,    began_uncertainty_,   run.devices,
            run.spans, std::move(log.spans), run.dropped + log.dropped};
    for (CollectiveSpan& c : part.collectives) c.step = step_at(part.spans, c.begin - began_);
  } catch (...) {
    failed = std::current_exception();
  }
  std::vector<RankRun> all = gather_ranks(ranks, part, trace::now);
  if (failed) std::rethrow_exception(failed);
  if (ranks.rank() == 0)
    report_.runs_.back().ranks = std::make_shared<const std::vector<RankRun>>(std::move(all));
}

}  // namespace braid::parallel
