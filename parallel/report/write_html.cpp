// Writes the report as one page. An element contains the data as JSON; the script draws it.
#include <algorithm>
#include <map>
#include <set>

#include <braid/core/error.hpp>
#include <braid/parallel/report.hpp>

#include "report/page.hpp"
#include "report/ranks.hpp"
#include "report/write_json.hpp"

namespace braid::parallel {
namespace {

// per run: what a phone can draw quickly
constexpr std::size_t kShownSteps = 3, kShownSpans = 6000;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

/// Escapes JSON so that it cannot end the script element or begin a comment in it. These characters
/// occur only in strings.
std::string for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') out += "\\u003c";
    else if (c == '>') out += "\\u003e";
    else if (c == '&') out += "\\u0026";
    else out += c;
  }
  return out;
}

/// The steps whose spans are drawn. The first step, which allocates memory and starts threads, is
/// drawn only if it is the only one.
std::set<std::int64_t> shown_steps(const MeasuredRun& run) {
  std::map<std::int64_t, std::size_t> spans;
  for (const trace::Record& r : run.spans)
    if (r.step >= 0) ++spans[r.step];
  if (spans.size() > 1) spans.erase(spans.begin());
  std::set<std::int64_t> shown;
  std::size_t count = 0;
  for (const auto& [step, size] : spans) {
    if (shown.size() == kShownSteps || (count += size) > kShownSpans) break;
    shown.insert(step);
  }
  if (shown.empty() && !spans.empty()) shown.insert(spans.begin()->first);  // its first spans
  return shown;
}

/// Writes the spans of the shown steps, at most `most`.
void write_spans(JsonText& json, const std::vector<Device>& devices,
                 const std::vector<trace::Record>& spans, const std::set<std::int64_t>& steps,
                 std::size_t first_lane, std::size_t most) {
  std::size_t count = 0;
  for (const trace::Record& r : spans) {
    const auto lane = std::find(devices.begin(), devices.end(), r.device);
    if (r.phase == trace::Phase::step || steps.count(r.step) == 0 || lane == devices.end())
      continue;
    if (++count > most) break;
    json.object()
        .field("lane", first_lane + static_cast<std::size_t>(lane - devices.begin()))
        .field("name", r.name)
        .field("phase", r.phase.name())
        .field("step", r.step);
    json.field("begin", static_cast<double>(r.begin) * 1e-9)
        .field("length", static_cast<double>(r.end - r.begin) * 1e-9)
        .field("replica", r.rank);
    json.field("bytes", r.bytes).field("cached", r.cached_bytes).end();
  }
}

/// Writes the collectives of the shown steps; within each the time for which the rank waited.
void write_collectives(JsonText& json, const RankRun& rank, const std::set<std::int64_t>& steps,
                       std::size_t lane, std::size_t most) {
  std::size_t count = 0;
  for (const CollectiveSpan& c : rank.collectives) {
    if (steps.count(c.step) == 0) continue;
    if (++count > most) break;
    const auto write = [&](std::string_view name, const char* phase, std::int64_t length) {
      json.object().field("lane", lane).field("name", name).field("phase", phase);
      json.field("step", c.step).field("begin", static_cast<double>(c.begin) * 1e-9);
      json.field("length", static_cast<double>(length) * 1e-9).field("replica", -1);
      json.field("bytes", c.bytes).field("cached", 0).field("call", c.call).end();
    };
    write(c.name, "collective", c.end - c.begin);
    if (c.waited > 0) write("wait for the other ranks", "wait", c.waited);
  }
}

void write_timeline(JsonText& json, const MeasuredRun& run) {
  const std::set<std::int64_t> steps = shown_steps(run);
  json.line().object().key("shown").array();
  for (const std::int64_t step : steps) json.value(step);
  json.end();
  if (run.ranks != nullptr) {
    json.key("lanes").array();
    for (const RankRun& rank : *run.ranks) {
      for (const Device d : rank.devices) json.value(str("rank ", rank.rank, " · ", d));
      json.value(str("rank ", rank.rank, " · collectives"));
    }
    json.end();
  }
  json.key("spans").array();
  if (run.ranks == nullptr) write_spans(json, run.devices, run.spans, steps, 0, kShownSpans);
  std::size_t lane = 0;
  for (const RankRun& rank : ranks_of(run)) {
    const std::size_t most = std::max<std::size_t>(kShownSpans / ranks_of(run).size() / 2, 1);
    write_spans(json, rank.devices, rank.spans, steps, lane, most);
    lane += rank.devices.size();
    write_collectives(json, rank, steps, lane++, most);
  }
  json.end().end();
}

/// The template with each `{{name}}` replaced by that part. Parts are not searched for names.
std::string filled(std::string_view page, const std::map<std::string, std::string>& parts) {
  std::string out;
  while (!page.empty()) {
    const std::size_t open = page.find("{{"), close = page.find("}}", open);
    out += page.substr(0, open);
    if (open == page.npos) break;
    if (close == page.npos) throw InternalError("page.html: expected }} after {{, got none");
    const std::string name(page.substr(open + 2, close - open - 2));
    const auto part = parts.find(name);
    if (part == parts.end())
      throw InternalError(str("page.html: expected the name of a part, got {{", name, "}}"));
    out += part->second;
    page.remove_prefix(close + 2);
  }
  return out;
}

}  // namespace

std::string DataParallelReport::html() const {
  JsonText json;
  json.object();
  write_fields(json, *this);
  json.line().key("timelines").array();
  for (const MeasuredRun& run : runs_) write_timeline(json, run);
  json.end().end();

  return filled(page_html(), {{"title", escaped(title_)},
                              {"style", std::string(page_css())},
                              {"text", escaped(text())},
                              {"data", for_script(json.text())},
                              {"elements", std::string(page_elements())},
                              {"charts", std::string(page_charts())},
                              {"sections", std::string(page_sections())}});
}

}  // namespace braid::parallel
