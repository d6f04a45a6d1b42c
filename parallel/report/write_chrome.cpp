// Writes the Trace Event Format ("X" events) for Perfetto and chrome://tracing.
#include <algorithm>
#include <map>

#include <braid/core/error.hpp>
#include <braid/parallel/report.hpp>

#include "report/json_text.hpp"

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

void write_run(JsonText& json, const MeasuredRun& run, int process) {
  write_name(json, "process_name", process, 0,
             str(run.devices.size(),
                 run.devices.size() == 1 ? " device, batch " : " devices, batch ", run.batch));
  write_name(json, "thread_name", process, 1, "steps");
  constexpr int kTracks = 16;  // maximum per device
  std::map<Device, Tracks> tracks;
  std::map<Device, int> numbers;
  for (const Device d : run.devices) numbers.emplace(d, static_cast<int>(numbers.size()));
  for (const trace::Record& r : run.spans)
    numbers.emplace(r.device, static_cast<int>(numbers.size()));
  std::map<int, std::string> names;
  for (const auto& [device, number] : numbers) names[2 + number * kTracks] = str(device);
  for (const trace::Record& r : run.spans) {
    int track = 1;
    if (r.phase != trace::Phase::step) {
      const int further = static_cast<int>(
          std::min<std::size_t>(tracks[r.device].place(r.begin, r.end), kTracks - 1));
      track = 2 + numbers[r.device] * kTracks + further;
      if (further > 0) names[track] = str(r.device, " (", further + 1, ")");
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
  for (const auto& [track, name] : names) write_name(json, "thread_name", process, track, name);
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
