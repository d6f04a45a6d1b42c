// The report's output: JSON and traces that a strict parser accepts, tables, and a page that no
// name can break.
#include <cstdlib>

#include "report/json_text.hpp"
#include "report_steps.hpp"
#include "support/json_value.hpp"
#include "support/temporary.hpp"

namespace braid::test::on_device {

using parallel::DataParallelReport;
using parallel::JsonText;

namespace {

constexpr const char* kHostile =
    "</script><script>window.stolen = 1</script><img src=x onerror='window.stolen = 1'>\"'&\x01 "
    "\xff \xe2\x80\xa8 <!--";

/// Runs on one device and on several, timed, with ceilings.
DataParallelReport measured(const std::string& title) {
  DataParallelReport report(title);
  const int steps = emulated() ? 2 : 5;
  const std::int64_t width = cut(64, 8);
  for (const std::int64_t rows : {32, 64, 128}) ReportSteps(1, rows, width).record(report, steps);
  const double one = report.runs()[0].seconds;
  for (int n = 2; n <= up_to(4); ++n) {
    if (128 % n == 0) report.add_independent(n, 128 / n, one * 1.5);
    ReportSteps(n, 128, width).record(report, steps);
  }
  return report;
}
const DataParallelReport& hostile() {
  static const DataParallelReport report = measured(kHostile);
  return report;
}

/// Whether devices of a run share a processor or a GPU. One device alone does not.
bool any_simulated(const DataParallelReport& report) {
  return std::ranges::any_of(report.runs(), [](const auto& run) { return run.simulated; });
}

bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}
std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}
/// The data inside a page.
JsonValue data_of(std::string_view page) {
  const std::size_t from = page.find("id=\"data\">") + 10;
  return parse_json(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("report: JSON text is escaped, valid UTF-8, null where no number is", "[report]") {
  JsonText json;
  json.object().field("a\"b", std::string_view("\\ \n\x01 \xff\xc3(\xc3\xa9"));
  json.field("x", 0.1).field("n", std::int64_t{-3}).field("t", true).field("inf", 1.0 / 0.0);
  json.key("list").array().value(1).value("two").null().object().end().end().end();
  CHECK(json.text() ==
        "{\"a\\\"b\":\"\\\\ \\u000a\\u0001 "
        "\xef\xbf\xbd\xef\xbf\xbd(\xc3\xa9\",\"x\":0.1,\"n\":-3,\"t\":true,\"inf\":null,\"list\":["
        "1,\"two\",null,{}]}");
  (void)parse_json(json.text());
  CHECK(parallel::valid_utf8("\xe2\x82") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(parallel::valid_utf8("a\xf0\x9f\x98\x80") == "a\xf0\x9f\x98\x80");
}

TEST_CASE("report: the JSON has every run with its prediction", "[report]") {
  const DataParallelReport& report = hostile();
  const JsonValue json = parse_json(report.json());
  CHECK(json["simulated"].boolean == any_simulated(report));
  REQUIRE(json["runs"].items.size() == report.runs().size());
  const auto predictions = report.predictions();
  for (std::size_t i = 0; i < report.runs().size(); ++i) {
    const JsonValue& run = json["runs"][i];
    const parallel::MeasuredRun& of = report.runs()[i];
    CHECK(run["devices"].number == static_cast<double>(of.devices.size()));
    CHECK(run["samples_per_s"].number == Approx(static_cast<double>(of.batch) / of.seconds));
    CHECK(run["predicted"].number == Approx(predictions[i].predicted));
    CHECK(run["simulated"].boolean == of.simulated);
    CHECK(run["replicas"].items.size() == of.replicas.size());
    CHECK(run["memory"].items.size() == of.devices.size());
    CHECK(run["critical_seconds"]["compute"].number > 0);
    CHECK(run["predicted_seconds"].has("other"));
    CHECK_FALSE(run["dominating_term"].string.empty());
  }
  for (const JsonValue& e : json["efficiencies"].items) CHECK(e["efficiency"].number > 0);
  CHECK(json["efficiencies"].items.size() == report.efficiencies().size());
  CHECK(json["cost_model"]["compute"]["slope"].number >= 0);
  const JsonValue none = parse_json(DataParallelReport("none").json());
  CHECK(none["cost_model"].is_null());
  CHECK(none["runs"].items.empty());
}

TEST_CASE("report: the trace has every span; events of a track nest", "[report]") {
  const DataParallelReport& report = hostile();
  const JsonValue trace = parse_json(report.chrome_trace());
  std::size_t spans = 0, events = 0;
  for (const auto& run : report.runs()) spans += run.spans.size();
  std::map<std::pair<double, double>, std::vector<std::pair<double, double>>> tracks;
  std::map<double, std::string> processes;
  for (const JsonValue& e : trace["traceEvents"].items) {
    if (e["ph"].string == "M") {
      if (e["name"].string == "process_name") processes[e["pid"].number] = e["args"]["name"].string;
      continue;
    }
    ++events;
    REQUIRE(e["ph"].string == "X");
    CHECK(e["dur"].number >= 0);
    CHECK(e["args"].has("step"));
    tracks[{e["pid"].number, e["tid"].number}].emplace_back(e["ts"].number,
                                                            e["ts"].number + e["dur"].number);
  }
  CHECK(events == spans);
  CHECK(processes.size() == report.runs().size());
  CHECK(processes[1] == "1 device, batch 32");
  for (auto& [track, list] : tracks) {
    CAPTURE(track.first, track.second);
    std::vector<double> open;
    constexpr double kRounding = 1e-5;  // us: rounding of doubles; times are whole ns
    for (const auto& [begin, end] : list) {
      while (!open.empty() && open.back() <= begin + kRounding) open.pop_back();
      CHECK((open.empty() || end <= open.back() + kRounding));
      open.push_back(end);
    }
  }
}

TEST_CASE("report: spans of a device that overlap without nesting go to two tracks", "[report]") {
  DataParallelReport report;
  {
    auto recording = report.record(group(1), 1);
    const auto step = recording.step();
    const auto span = [](const char* name) {
      return std::make_unique<trace::Span>(name, trace::Phase::compute, device(0));
    };
    auto first = span("first"), second = span("second");
    synchronize(device(0));
    first.reset();
    second.reset();
    const auto third = span("third");
  }
  std::map<std::string, double> track_of;
  std::map<double, std::string> names;
  const JsonValue trace = parse_json(report.chrome_trace());
  for (const JsonValue& e : trace["traceEvents"].items) {
    if (e["name"].string == "thread_name") names[e["tid"].number] = e["args"]["name"].string;
    else if (e["ph"].string == "X") track_of[e["name"].string] = e["tid"].number;
  }
  CHECK(names[track_of["first"]] == str(device(0)));
  CHECK(names[track_of["second"]] == str(device(0), " (2)"));
  CHECK(names[track_of["third"]] == str(device(0)));
  CHECK(names[track_of["step"]] == "steps");
}

TEST_CASE("report: the tables name every device, the efficiency and the model", "[report]") {
  const DataParallelReport report = measured(
      "tables \x1b[31m\xc2\x9b"
      "31m\xc2\xa0");
  const std::string text = report.text();
  CHECK(text.find("DataParallel report: tables ?[31m?31m\xc2\xa0\n") == 0);
  CHECK(count(text, "the whole step") == report.runs().size());
  for (const Device d : report.runs().back().devices) CHECK(contains(text, str(d)));
  CHECK(contains(text, "cost model: c(b) = max("));
  if (device_count() > 1) {
    CHECK(contains(text, "strong  2 devices, batch      128: "));
    CHECK(contains(text, "(ceiling "));
  }
  CHECK(contains(text, "simulated: true") == any_simulated(report));
  CHECK(DataParallelReport("empty").text() == "DataParallel report: empty\n");
}

TEST_CASE("report: no name ends the page's script; nothing is fetched", "[report]") {
  const std::string page = hostile().html();
  const std::pair<const char*, std::size_t> counts[] = {
      {"<script", 2}, {"</script>", 2}, {"<img", 0},
      {"<!--", 0},    {"https://", 0},  {"http://", 1}};  // SVG's namespace
  for (const auto& [what, times] : counts) {
    INFO(what);
    CHECK(count(page, what) == times);
  }
  for (const char* const what :
       {"<title>&lt;/script&gt;", "default-src 'none'", "http://www.w3.org/2000/svg",
        "name=\"viewport\"", "prefers-color-scheme: dark"}) {
    INFO(what);
    CHECK(contains(page, what));
  }
  const JsonValue data = data_of(page);
  CHECK(data["title"].string.find("</script><script>") == 0);
  CHECK(data["timelines"].items.size() == data["runs"].items.size());
}

TEST_CASE("report: the page draws three steps after the first, and 6000 spans", "[report]") {
  struct Case {
    int steps, spans;  // spans of each step, including the step's own
    std::vector<double> shown;
    std::size_t drawn;
  };
  for (const Case& c : {Case{6, 3, {1, 2, 3}, 6}, Case{4, 3000, {1, 2}, 5998},
                        Case{4, 3001, {1}, 3000}, Case{1, 6100, {0}, 6000}}) {
    INFO(c.steps << " steps of " << c.spans << " spans");
    DataParallelReport report("many");
    {
      auto recording = report.record({Device("cpu:0")}, 1);
      for (int i = 0; i < c.steps; ++i) {
        const auto step = recording.step();
        for (int k = 1; k < c.spans; ++k)
          const trace::Span span("span", trace::Phase::compute, Device("cpu:0"));
      }
    }
    const JsonValue data = data_of(report.html()), &timeline = data["timelines"].items[0];
    std::vector<double> shown;
    for (const JsonValue& step : timeline["shown"].items) shown.push_back(step.number);
    CHECK(shown == c.shown);
    CHECK(timeline["spans"].items.size() == c.drawn);
  }
}

TEST_CASE("report: write puts four files beside each other, or says where it cannot", "[report]") {
  const TemporaryFolder folder;
  DataParallelReport report("files");
  ReportSteps(1, 8, 8).record(report, 2);  // one run: no data about several devices
  report.write(folder / "split-report");
  CHECK(folder.names().size() == 4);
  CHECK(read_file(folder / "split-report.txt") == report.text());
  CHECK(read_file(folder / "split-report.json") == report.json());
  CHECK(read_file(folder / "split-report.trace.json") == report.chrome_trace());
  CHECK(read_file(folder / "split-report.html") == report.html());
  CHECK_THROWS_TEXT(IoError, "*nowhere*", report.write(folder / "nowhere/split-report"));
}

// Hidden: parallel.report_page (report_page.sh) opens the output in a browser.
TEST_CASE("report: the pages for the browser's test", "[.report_page]") {
  const char* const folder = std::getenv("BRAID_REPORT_DIR");
  REQUIRE(folder);
  measured("bench_split: MLP 16-64-4").write(str(folder, "/split-report"));
  hostile().write(str(folder, "/hostile"));
  DataParallelReport bare("A step without spans");
  {
    auto recording = bare.record(group(1), 1);
    const auto step = recording.step();
  }
  bare.write(str(folder, "/no-spans"));
  DataParallelReport("Nothing was measured").write(str(folder, "/empty"));
}

}  // namespace braid::test::on_device
