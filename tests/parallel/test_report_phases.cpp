// From spans to phases, on spans that are written down.
#include <vector>

#include "report/phases.hpp"
#include "support/catch.hpp"

namespace braid::test {

using parallel::PhaseSeconds;
using parallel::Piece;
using trace::Phase;
using trace::Record;

namespace {

const Device kFirst("cpu:0"), kSecond("cpu:1");

Record span(Device device, Phase phase, std::int64_t begin, std::int64_t end,
            std::int64_t step = 0) {
  Record r{};
  r.name = "span";
  r.device = device;
  r.phase = phase;
  r.begin = begin;
  r.end = end;
  r.step = step;
  return r;
}
bool same(const std::vector<Piece>& got, const std::vector<Piece>& want) {
  if (got.size() != want.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i].begin != want[i].begin || got[i].end != want[i].end || got[i].phase != want[i].phase)
      return false;
  return true;
}

}  // namespace

TEST_CASE("report: at each moment the innermost span of a device counts", "[parallel][report]") {
  const std::vector<Record> spans = {
      span(kFirst, Phase::step, 0, 100),      span(kFirst, Phase::compute, 10, 60),
      span(kFirst, Phase::reduce, 20, 30),    span(kFirst, Phase::reduce, 30, 40),
      span(kSecond, Phase::gather, 0, 100),   span(kFirst, Phase::compute, 200, 210, 1),
      span(kFirst, Phase::scatter, -50, 5),  // began before the step
      span(kFirst, Phase::optimizer, 90, 300)};
  CHECK(same(parallel::flatten_spans(spans, kFirst, 0, 0, 100), {{0, 5, Phase::scatter},
                                                                 {10, 20, Phase::compute},
                                                                 {20, 40, Phase::reduce},
                                                                 {40, 60, Phase::compute},
                                                                 {90, 100, Phase::optimizer}}));
  // Spans that overlap without nesting: the later one counts while both are open.
  const std::vector<Record> crossing = {span(kFirst, Phase::compute, 0, 50),
                                        span(kFirst, Phase::gather, 40, 80)};
  CHECK(same(parallel::flatten_spans(crossing, kFirst, 0, 0, 100),
             {{0, 40, Phase::compute}, {40, 80, Phase::gather}}));
  CHECK(parallel::flatten_spans(crossing, kSecond, 0, 0, 100).empty());
}

TEST_CASE(
    "report: a step is divided among what its devices wait for; where one computes, that counts",
    "[parallel][report]") {
  constexpr std::int64_t ms = 1'000'000;
  const std::vector<std::vector<Piece>> devices = {{{0, 10 * ms, Phase::scatter},
                                                    {10 * ms, 40 * ms, Phase::compute},
                                                    {60 * ms, 70 * ms, Phase::reduce}},
                                                   {{0, 20 * ms, Phase::scatter},
                                                    {20 * ms, 60 * ms, Phase::compute},
                                                    {60 * ms, 75 * ms, Phase::gather}}};
  const PhaseSeconds s = parallel::critical_path(devices, 0.1);
  CHECK(s.scatter == Approx(0.010));
  CHECK(s.compute == Approx(0.050));
  CHECK(s.reduce == Approx(0.010));
  CHECK(s.gather == Approx(0.005));
  CHECK(s.optimizer == 0);
  CHECK(s.idle == Approx(0.025));
  CHECK(s.total() == Approx(0.1));
  const PhaseSeconds one = parallel::sum_pieces(devices[0], 0.1);
  CHECK(one.compute == Approx(0.030));
  CHECK(one.idle == Approx(0.050));
  CHECK(parallel::critical_path({}, 0.1).idle == Approx(0.1));
}

TEST_CASE("report: the first of several steps is in no median", "[parallel][report]") {
  parallel::MeasuredRun run;
  run.devices = {kFirst};
  std::int64_t at = 0;
  for (const auto& [length, compute] : {std::pair{1000, 900}, {100, 60}, {120, 70}, {110, 80}}) {
    const auto step = static_cast<std::int64_t>(run.spans.size() / 2);
    run.spans.push_back(span(kFirst, Phase::step, at, at + length, step));
    run.spans.push_back(span(kFirst, Phase::compute, at, at + compute, step));
    at += 2000;
  }
  parallel::find_phases(run, 1e-9);
  CHECK(run.steps == 4);
  CHECK(run.replicas.size() == 4);
  CHECK(run.recorded_seconds == Approx(110e-9));
  CHECK(run.critical.compute == Approx(70e-9));
  CHECK(run.critical.idle == Approx(40e-9));
  CHECK(run.overhead == Approx(2e-9 / 110e-9));
  // Medians that do not add up: compute 20, 50, 60 and idle 80, 10, 10 of steps of 100, 60, 70.
  parallel::MeasuredRun uneven;
  uneven.devices = {kFirst};
  for (const auto& [length, compute] : {std::pair{1000, 900}, {100, 20}, {60, 50}, {70, 60}}) {
    const auto step = static_cast<std::int64_t>(uneven.spans.size() / 2);
    uneven.spans.push_back(span(kFirst, Phase::step, at, at + length, step));
    uneven.spans.push_back(span(kFirst, Phase::compute, at, at + compute, step));
    at += 2000;
  }
  parallel::find_phases(uneven, 1e-9);
  CHECK(uneven.critical.total() == Approx(70e-9));
  CHECK(uneven.critical.compute == Approx(70e-9 * 50 / 60));
  CHECK(parallel::median({}) == 0);
  CHECK(parallel::median({3, 1}) == 2);
}

}  // namespace braid::test
