// Writes the Trace Event Format ("X" events) for Perfetto and chrome://tracing.
#include <algorithm>
#include <map>

#include <braid/core/error.hpp>
#include <braid/parallel/report.hpp>

#include "report/json_text.hpp"
#include "report/ranks.hpp"

namespace braid::parallel {
namespace {

void write_name(JsonText& json, const char* what, int process, int track, std::string_view name) {
  json.line()
      .object()
      .field("name", what)
      .field("ph", "M")
      .field("pid", process)
      .field("tid", track);
  json.key("args").object().field("name", name).end().end();
}

/// Viewers drop spans of a track that overlap without nesting. Such a span goes to another track of
/// its device.
class Tracks {
 public:
  /// Returns the index of the device's track for the span. Spans must come sorted by beginning, the
  /// longer first.
  std::size_t place(std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      std::vector<std::int64_t>& ends = open_[i];
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      if (!ends.empty() && ends.back() < end) continue;
      ends.push_back(end);
      return i;
    }
    open_.push_back({end});
    return open_.size() - 1;
  }

 private:
  // [track]: the ends of the open spans, the innermost last
  std::vector<std::vector<std::int64_t>> open_;
};

constexpr int kTracks = 16;  // maximum per device

/// The spans of a process: a track `steps`, then those of each device.
struct SpanList {
  const std::vector<Device>& devices;
  const std::vector<trace::Record>& spans;
  std::string rank;  // before the name of a track
  int steps;         // the number of its first track
};

/// Writes the spans. Returns the number of the track after them; adds the tracks' names.
int write_spans(JsonText& json, const SpanList& list, int process,
                std::map<int, std::string>& names) {
  std::map<Device, Tracks> tracks;
  std::map<Device, int> numbers;
  for (const Device d : list.devices) numbers.emplace(d, static_cast<int>(numbers.size()));
  for (const trace::Record& r : list.spans)
    numbers.emplace(r.device, static_cast<int>(numbers.size()));
  const int first = list.steps + 1;
  for (const auto& [device, number] : numbers)
    names[first + number * kTracks] = list.rank + str(device);
  for (const trace::Record& r : list.spans) {
    int track = list.steps;
    if (r.phase != trace::Phase::step) {
      const int further = static_cast<int>(
          std::min<std::size_t>(tracks[r.device].place(r.begin, r.end), kTracks - 1));
      track = first + numbers[r.device] * kTracks + further;
      if (further > 0) names[track] = list.rank + str(r.device, " (", further + 1, ")");
    }
    json.line().object().field("name", r.name).field("cat", r.phase.name()).field("ph", "X");
    json.key("ts")
        .micros(r.begin)
        .key("dur")
        .micros(r.end - r.begin)
        .field("pid", process)
        .field("tid", track);
    json.key("args")
        .object()
        .field("step", r.step)
        .field("clock", r.clock == trace::Clock::device ? "device" : "host");
    if (r.rank >= 0) json.field("replica", r.rank);
    if (r.bytes != 0) json.field("bytes", r.bytes);
    if (r.cached_bytes != 0) json.field("cached_bytes", r.cached_bytes);
    if (r.memory != 0) json.field("memory", r.memory);
    json.end().end();
  }
  return first + static_cast<int>(numbers.size()) * kTracks;
}

/// Writes a collective, and within it the time for which the rank waited for the others.
void write_collective(JsonText& json, const CollectiveSpan& c, int process, int track) {
  const auto write = [&](std::string_view name, const char* category, std::int64_t length) {
    json.line().object().field("name", name).field("cat", category).field("ph", "X");
    json.key("ts").micros(c.begin).key("dur").micros(length);
    json.field("pid", process).field("tid", track).key("args").object().field("step", c.step);
    json.field("call", c.call).field("bytes", c.bytes).end().end();
  };
  write(c.name, "collective", c.end - c.begin);
  if (c.waited > 0) write("wait for the other ranks", "wait", c.waited);
}

void write_run(JsonText& json, const MeasuredRun& run, int process) {
  write_name(json, "process_name", process, 0,
             str(run.devices.size(),
                 run.devices.size() == 1 ? " device, batch " : " devices, batch ", run.batch));
  std::map<int, std::string> names;
  if (run.ranks == nullptr) {
    write_name(json, "thread_name", process, 1, "steps");
    (void)write_spans(json, {run.devices, run.spans, "", 1}, process, names);
  }
  int track = 1;
  for (const RankRun& rank : ranks_of(run)) {
    const std::string prefix = str("rank ", rank.rank, " · ");
    names[track] = prefix + "steps";
    track = write_spans(json, {rank.devices, rank.spans, prefix, track}, process, names);
    names[track] = prefix + "collectives";
    for (const CollectiveSpan& c : rank.collectives) write_collective(json, c, process, track);
    ++track;
  }
  for (const auto& [number, name] : names) write_name(json, "thread_name", process, number, name);
}

}  // namespace

std::string DataParallelReport::chrome_trace() const {
  JsonText json;
  json.object().field("displayTimeUnit", "ms").key("otherData").object().field("title", title_);
  json.field("simulated", std::any_of(runs_.begin(), runs_.end(),
                                      [](const MeasuredRun& r) { return r.simulated; }))
      .end();
  json.key("traceEvents").array();
  int process = 0;
  for (const MeasuredRun& run : runs_) write_run(json, run, ++process);
  return json.end().end().text() + "\n";
}

}  // namespace braid::parallel
