// The report of several ranks: clocks, the exchange of spans, and what the outputs show of them.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "distributed.hpp"
#include "process/collective_log.hpp"
#include "report/ranks.hpp"
#include "report_steps.hpp"
#include "support/json_value.hpp"

namespace braid::test::on_device {

using parallel::CollectiveSpan;
using parallel::DataParallelReport;
using parallel::ProcessCommunicator;
using parallel::RankPart;
using parallel::RankRun;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr const char* kHostilePhase = "compute, url(//elsewhere)";  // not a name of a colour

/// Each rank's clock is a second more ahead, the last one's behind.
std::int64_t planted(int rank) { return rank == 2 ? -7'000 * kMs : 1'000 * kMs * rank; }
parallel::HostClock clock_of(int rank) {
  return [rank] { return trace::now() + planted(rank); };
}

trace::Record span(const char* name, trace::Phase phase, std::int64_t begin, std::int64_t end) {
  return {.name = name,
          .begin = begin,
          .end = end,
          .step = 0,
          .bytes = 7,
          .cached_bytes = 0,
          .kept_bytes = 0,
          .memory = 0,
          .rank = -1,
          .thread = 0,
          .device = Device(),
          .phase = phase,
          .clock = trace::Clock::host};
}

/// All began at the moment `at`; each has a span and a collective 2 ms later.
RankPart part_of(int rank, std::int64_t at) {
  const std::int64_t began = at + planted(rank);
  RankPart part{.began = began, .devices = {Device()}};
  if (rank == 1) return part;  // a rank without spans
  part.spans = {span("step", trace::Phase::step, 0, 10 * kMs),
                span("</script>\"", trace::Phase(kHostilePhase), 2 * kMs, 4 * kMs)};
  part.collectives = {{.name = "all_reduce(bucket 3, 28 bytes)",
                       .call = 118,
                       .bytes = 28,
                       .step = 0,
                       .begin = began + 2 * kMs,
                       .end = began + 5 * kMs,
                       .waited = kMs}};
  return part;
}

std::vector<RankRun> gathered(std::int64_t at) {
  std::vector<RankRun> runs;
  on_ranks(3, [&](ProcessCommunicator& ranks) {
    const int r = ranks.rank();
    auto got = parallel::gather_ranks(ranks, part_of(r, at), clock_of(r));
    if (r == 0) runs = std::move(got);
    else expect(got.empty(), "no runs beside rank 0");
  });
  return runs;
}

/// A report of one step, with the ranks' runs.
DataParallelReport report_of(const std::vector<RankRun>& runs) {
  DataParallelReport report("three processes");
  {
    auto recording = report.record({device(0)}, 4);
    const auto step = recording.step();
  }
  const_cast<parallel::MeasuredRun&>(report.runs()[0]).ranks =
      std::make_shared<const std::vector<RankRun>>(runs);
  return report;
}

}  // namespace

TEST_CASE("report of ranks: planted offsets of clocks are found", "[report][ranks]") {
  std::vector<parallel::ClockOffset> offsets;
  on_ranks(3, [&](ProcessCommunicator& ranks) {
    auto got = parallel::measure_clocks(ranks, clock_of(ranks.rank()));
    if (ranks.rank() == 0) offsets = std::move(got);
  });
  REQUIRE(offsets.size() == 3);
  CHECK(offsets[0].uncertainty == 0);
  for (int r = 0; r < 3; ++r) {
    const parallel::ClockOffset& found = offsets[static_cast<std::size_t>(r)];
    CHECK(std::abs(found.offset - planted(r)) <= found.uncertainty);
    CHECK(found.uncertainty < 500 * kMs);
  }
}

TEST_CASE("report of ranks: spans of all ranks are on the clock of rank 0", "[report][ranks]") {
  const std::vector<RankRun> runs = gathered(trace::now());
  REQUIRE(runs.size() == 3);
  CHECK(runs[1].spans.empty());
  CHECK(runs[1].collectives.empty());
  for (const std::size_t r : {0u, 2u}) {
    const std::int64_t most = runs[r].clock_uncertainty;
    REQUIRE(runs[r].spans.size() == 2);
    CHECK(std::abs(runs[r].spans[1].begin - 2 * kMs) <= most);
    CHECK(runs[r].spans[1].end - runs[r].spans[1].begin == 2 * kMs);
    REQUIRE(runs[r].collectives.size() == 1);
    CHECK(std::abs(runs[r].collectives[0].begin - 2 * kMs) <= most);
    CHECK(runs[r].collectives[0].call == 118);
  }

  // A world of one has none.
  DataParallelReport single("one process");
  on_ranks(1, [&](ProcessCommunicator& alone) {
    auto recording = single.record({device(0)}, 4);
    { const auto step = recording.step(); }
    recording.finish(alone);
  });
  REQUIRE(single.runs().size() == 1);
  CHECK(single.runs()[0].ranks == nullptr);
  CHECK(single.runs()[0].spans.size() == 1);
  CHECK(single.json().find("\"ranks\"") == std::string::npos);
  CHECK(single.html().find("\"lanes\"") == std::string::npos);

  const DataParallelReport report = report_of(runs);
  const JsonValue json = parse_json(report.json());
  REQUIRE(json["runs"][0]["ranks"].items.size() == 3);
  CHECK(json["runs"][0]["ranks"][2]["rank"].number == 2);
  CHECK(json["runs"][0]["ranks"][2]["collective_bytes"].number == 28);
  const JsonValue trace = parse_json(report.chrome_trace());
  std::vector<std::string> tracks;
  std::vector<double> begins;
  int waits = 0;
  for (const JsonValue& e : trace["traceEvents"].items) {
    if (e["name"].string == "thread_name") tracks.push_back(e["args"]["name"].string);
    if (e["name"].string == "</script>\"") begins.push_back(e["ts"].number);
    waits += e["ph"].string == "X" && e["cat"].string == "wait";
  }
  for (const char* const track : {"rank 0 · cpu:0", "rank 1 · cpu:0", "rank 2 · collectives"})
    CHECK(std::count(tracks.begin(), tracks.end(), track) == 1);
  CHECK(waits == 2);
  REQUIRE(begins.size() == 2);
  CHECK(std::abs(begins[0] - begins[1]) <= 1e-3 * static_cast<double>(runs[2].clock_uncertainty));
  const std::string page = report.html();
  CHECK(page.find("rank 1 · cpu:0") != std::string::npos);
  CHECK(page.find("bucket 3") != std::string::npos);
  CHECK(page.find("</script>\"") == std::string::npos);  // escaped
  CHECK(report.text().find("clock off, us") != std::string::npos);
  CHECK(report.text().find("rank 2 · cpu:0 ") != std::string::npos);
}

TEST_CASE("report of ranks: malformed spans are refused", "[report][ranks]") {
  const std::string good = parallel::encode_rank(part_of(2, 0));
  const auto decode = [](std::string_view bytes) { return parallel::decode_rank(bytes, 2, {}, 0); };
  CHECK(decode(good).spans.size() == 2);
  for (std::size_t n = 0; n < good.size(); ++n)
    CHECK_THROWS_TEXT(CommError, "*rank 2*", decode(std::string_view(good).substr(0, n)));
  CHECK_THROWS_TEXT(CommError, "*expected nothing after the spans*", decode(good + "x"));
  CHECK_THROWS_TEXT(CommError, "*monotonic clock*",
                    (void)parallel::decode_rank(good, 2, {std::int64_t{1} << 62, 0}, 0));
  // Each byte with each bit turned: either refused or read within its bounds.
  int refused = 0;
  for (std::size_t i = 0; i < good.size() * 8; ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    try {
      const RankRun run = decode(bad);
      for (const trace::Record& s : run.spans)
        CHECK((s.begin <= s.end && std::strlen(s.name) < 257));
    } catch (const CommError&) {
      ++refused;
    }
  }
  CHECK(refused > 500);
  // What does not fit is counted.
  RankPart many = part_of(0, 0);
  many.spans.resize(100, many.spans[1]);
  const RankRun cut = parallel::decode_rank(parallel::encode_rank(many, 4000), 0, {}, 0);
  CHECK(cut.spans.size() + cut.dropped == 100);
  CHECK(cut.dropped > 0);
  CHECK(parallel::encode_rank(many, 4000).size() <= 4000);
  many.collectives.resize(parallel::process::kMostCollectives + 2, many.collectives[0]);
  const RankRun most = parallel::decode_rank(parallel::encode_rank(many), 0, {}, 0);
  CHECK(most.collectives.size() == parallel::process::kMostCollectives);
  CHECK(most.dropped == 2);
}

TEST_CASE("report of ranks: all ranks refuse what one of them sends", "[report][ranks]") {
  struct Case {
    std::int64_t clock, began;  // of rank 1
  };
  for (const Case& c : {Case{std::int64_t{1} << 62, 0}, Case{0, std::int64_t{1} << 61}}) {
    std::vector<std::string> texts(3);
    on_ranks(3, [&](ProcessCommunicator& ranks) {
      const int r = ranks.rank();
      const parallel::HostClock clock = [&] { return r == 1 ? c.clock : std::int64_t{0}; };
      texts[static_cast<std::size_t>(r)] = text_of(
          [&] { (void)parallel::gather_ranks(ranks, {.began = r == 1 ? c.began : 0}, clock); });
      ranks.barrier();  // the communicator goes on
    });
    for (const std::string& text : texts) {
      CHECK(text.find("rank 1: ") != std::string::npos);
      CHECK(text.find("the time of a monotonic clock") != std::string::npos);
    }
  }
}

TEST_CASE("report of ranks: collectives show who waits", "[report][ranks]") {
  parallel::process::clear_collectives();
  const trace::Recording recording{std::span<const Device>()};
  on_ranks(2, [](ProcessCommunicator& ranks) {
    if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ranks.start_all_reduce(ones({7}).to(ranks.device()), parallel::ReduceOp::sum, "bucket 3")
        .wait();
  });
  const auto first = parallel::process::take_collectives(0).spans,
             second = parallel::process::take_collectives(1).spans;
  REQUIRE((first.size() == 1 && second.size() == 1));
  CHECK(first[0].name.find("bucket 3") != std::string::npos);
  CHECK(first[0].call == 1);
  CHECK(first[0].bytes == 28);
  CHECK(first[0].waited > second[0].waited + 20 * kMs);
  CHECK(first[0].waited <= first[0].end - first[0].begin);
}

TEST_CASE("report of ranks: finish gathers on rank 0", "[report][ranks]") {
  // One recording exists in a process, so the other rank is one whose recording failed.
  DataParallelReport report("two ranks");
  on_ranks(2, [&](ProcessCommunicator& ranks) {
    if (ranks.rank() == 1) {
      ranks.barrier();
      ranks.all_reduce(ones({7}).to(ranks.device()));
      (void)parallel::gather_ranks(ranks, {.devices = {Device()}}, trace::now);
      return;
    }
    auto recording = report.record({ranks.device()}, 4);
    ranks.barrier();
    {
      const auto step = recording.step();
      ranks.all_reduce(ones({7}).to(ranks.device()));
    }
    recording.finish(ranks);
  });
  REQUIRE(report.runs().size() == 1);
  const parallel::MeasuredRun& run = report.runs()[0];
  REQUIRE(run.ranks != nullptr);
  REQUIRE(run.ranks->size() == 2);
  REQUIRE((*run.ranks)[0].collectives.size() == 2);
  const CollectiveSpan& c = (*run.ranks)[0].collectives[1];
  CHECK(c.step == 0);
  REQUIRE(run.spans.size() == 1);  // the step; no marks
  CHECK((run.spans[0].begin <= c.begin + kMs && c.end <= run.spans[0].end + kMs));
  CHECK((*run.ranks)[1].spans.empty());
}

TEST_CASE("report of ranks: a group has the collectives of its own ranks", "[report][ranks]") {
  DataParallelReport report("two of three ranks");
  on_ranks(3, [&](ProcessCommunicator& ranks) {
    const auto group = ranks.split(ranks.rank() == 0 ? -1 : 0);
    if (!group) return;
    if (group->rank() == 1) {
      group->barrier();
      (void)parallel::gather_ranks(*group, {.devices = {Device()}}, trace::now);
      return;
    }
    auto recording = report.record({group->device()}, 4);
    { const auto step = recording.step(); }
    synchronize(group->device());  // an emulated device ends the step's span only now
    group->barrier();
    { const auto step = recording.step(); }
    recording.finish(*group);
  });
  REQUIRE(report.runs().size() == 1);
  REQUIRE(report.runs()[0].ranks != nullptr);
  const RankRun& first = report.runs()[0].ranks->front();  // rank 1 of the world
  REQUIRE(first.collectives.size() == 1);
  CHECK(first.collectives[0].name == "barrier");
  CHECK(first.collectives[0].step == -1);  // between the steps
}

TEST_CASE("report of ranks: the page for the browser", "[.report_page]") {
  const char* const folder = std::getenv("BRAID_REPORT_DIR");
  REQUIRE(folder);
  report_of(gathered(trace::now())).write(std::string(folder) + "/ranks");
}

}  // namespace braid::test::on_device
