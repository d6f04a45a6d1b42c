// Phases from spans that the tests define; and the cost model, which recovers the numbers that the
// measurements were generated from, and the batch from which more devices are faster.
#include <algorithm>

#include "group.hpp"
#include "report/phases.hpp"

namespace braid::test {

using parallel::Collective;
using parallel::CostModel;
using parallel::CostPoint;
using parallel::CostSample;
using parallel::PhaseSeconds;
using parallel::Piece;
using trace::Phase;
using trace::Record;
namespace phase = parallel::phase;

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
  return std::equal(got.begin(), got.end(), want.begin(), want.end(),
                    [](const Piece& a, const Piece& b) {
                      return a.begin == b.begin && a.end == b.end && a.phase == b.phase;
                    });
}

/// The parameters from which measurements are generated.
struct Machine {
  double c0 = 2e-3, c1 = 20e-6, floor = 0;                               // compute
  double scatter_latency = 30e-6, scatter_rate = 8e9, row_bytes = 3136;  // of an input row
  double weights = 4e6, copy_latency = 50e-6, copy_rate = 10e9;          // bytes of all weights
  double reduce_latency = 80e-6, reduce_rate = 5e9;
  double gather_latency = 20e-6, gather_rate = 4e9, output_bytes = 80;
  double optimizer = 0.4e-3, other = 0.1e-3, other_row = 1e-6, group = 60e-6;

  [[nodiscard]] CostSample sample(int n, std::int64_t batch, double slowdown = 1,
                                  Collective collective = Collective::star) const {
    const double others = n - 1, rows = static_cast<double>(batch),
                 each = static_cast<double>((batch + n - 1) / n);
    CostSample s{.devices = n, .batch = batch, .slowdown = slowdown};
    s.seconds.compute = std::max(floor, c0 + c1 * each) * slowdown;
    s.seconds.optimizer = optimizer;
    s.seconds.idle = other + other_row * rows;
    if (n == 1) return s;
    const double times = collective == Collective::star ? others : 1;
    s.scatter_bytes = row_bytes * rows * others / n;
    s.gather_bytes = output_bytes * rows;
    s.replicate_bytes = s.reduce_bytes = weights * others;
    s.seconds.scatter = scatter_latency + s.scatter_bytes / scatter_rate;
    s.seconds.gather = gather_latency + s.gather_bytes / gather_rate;
    s.seconds.replicate = times * (copy_latency + weights / copy_rate);
    s.seconds.reduce = times * (reduce_latency + weights / reduce_rate);
    s.seconds.idle += group * others;
    return s;
  }
};
const Machine machine;

void check_same(const PhaseSeconds& got, const PhaseSeconds& want) {
  for (const auto phase : {&PhaseSeconds::scatter, &PhaseSeconds::replicate, &PhaseSeconds::compute,
                           &PhaseSeconds::gather, &PhaseSeconds::reduce, &PhaseSeconds::optimizer,
                           &PhaseSeconds::idle})
    CHECK(got.*phase == Approx(want.*phase));
}

CostModel fit(const std::vector<CostSample>& samples) { return CostModel::fit(samples); }

}  // namespace

TEST_CASE("report: at each moment the innermost span of a device counts", "[report]") {
  const std::vector<Record> spans = {
      span(kFirst, phase::step, 0, 100),      span(kFirst, phase::compute, 10, 60),
      span(kFirst, phase::reduce, 20, 30),    span(kFirst, phase::reduce, 30, 40),
      span(kSecond, phase::gather, 0, 100),   span(kFirst, phase::compute, 200, 210, 1),
      span(kFirst, phase::scatter, -50, 5),  // began before the step
      span(kFirst, phase::optimizer, 90, 300)};
  CHECK(same(parallel::flatten_spans(spans, kFirst, 0, 0, 100), {{0, 5, phase::scatter},
                                                                 {10, 20, phase::compute},
                                                                 {20, 40, phase::reduce},
                                                                 {40, 60, phase::compute},
                                                                 {90, 100, phase::optimizer}}));
  // Spans that overlap without nesting: the later one counts while both are open.
  const std::vector<Record> crossing = {span(kFirst, phase::compute, 0, 50),
                                        span(kFirst, phase::gather, 40, 80)};
  CHECK(same(parallel::flatten_spans(crossing, kFirst, 0, 0, 100),
             {{0, 40, phase::compute}, {40, 80, phase::gather}}));
  CHECK(parallel::flatten_spans(crossing, kSecond, 0, 0, 100).empty());
}

TEST_CASE("report: a step is divided among what its devices wait for", "[report]") {
  constexpr std::int64_t ms = 1'000'000;
  const std::vector<std::vector<Piece>> devices = {{{0, 10 * ms, phase::scatter},
                                                    {10 * ms, 40 * ms, phase::compute},
                                                    {60 * ms, 70 * ms, phase::reduce}},
                                                   {{0, 20 * ms, phase::scatter},
                                                    {20 * ms, 60 * ms, phase::compute},
                                                    {60 * ms, 75 * ms, phase::gather}}};
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

TEST_CASE("report: the first of several steps is in no median", "[report]") {
  const auto run_of = [](const std::vector<std::pair<int, int>>& steps) {  // length and compute
    parallel::MeasuredRun run;
    run.devices = {kFirst};
    std::int64_t at = 0, step = 0;
    for (const auto& [length, compute] : steps) {
      run.spans.push_back(span(kFirst, phase::step, at, at + length, step));
      run.spans.push_back(span(kFirst, phase::compute, at, at + compute, step++));
      at += 2000;
    }
    parallel::find_phases(run, 1e-9);
    return run;
  };
  const auto run = run_of({{1000, 900}, {100, 60}, {120, 70}, {110, 80}});
  CHECK(run.steps == 4);
  CHECK(run.replicas.size() == 4);
  CHECK(run.recorded_seconds == Approx(110e-9));
  CHECK(run.critical.compute == Approx(70e-9));
  CHECK(run.critical.idle == Approx(40e-9));
  CHECK(run.overhead == Approx(2e-9 / 110e-9));
  // Medians that do not add up: compute 20, 50, 60 and idle 80, 10, 10 of steps of 100, 60, 70.
  const auto uneven = run_of({{1000, 900}, {100, 20}, {60, 50}, {70, 60}});
  CHECK(uneven.critical.total() == Approx(70e-9));
  CHECK(uneven.critical.compute == Approx(70e-9 * 50 / 60));
  CHECK(parallel::median({}) == 0);
  CHECK(parallel::median({3, 1}) == 2);
}

TEST_CASE("cost model: from exact measurements it predicts what was not measured", "[report]") {
  for (const Collective collective : {Collective::star, Collective::ring}) {
    std::vector<CostSample> samples = {machine.sample(1, 256), machine.sample(1, 512)};
    for (const int n : {2, 4})
      for (const int batch : {512, 2048})
        samples.push_back(machine.sample(n, batch, 1, collective));
    const CostModel model = CostModel::fit(samples, collective);
    CHECK(model.compute().latency == Approx(machine.c0));
    CHECK(model.compute().slope == Approx(machine.c1));
    CHECK(model.compute_floor() == 0);
    CHECK(model.scatter().latency == Approx(machine.scatter_latency));
    CHECK(model.scatter().slope == Approx(1 / machine.scatter_rate));
    for (const auto& [n, batch] : {std::pair{1, 64}, {2, 1024}, {4, 100}, {8, 4096}, {3, 1000}})
      check_same(model.predict(n, batch), machine.sample(n, batch, 1, collective).seconds);
    check_same(model.predict(2, 1024, 1.5), machine.sample(2, 1024, 1.5, collective).seconds);
  }
}

TEST_CASE("cost model: compute is one device's; small sizes give a floor", "[report]") {
  // on devices that slow each other down
  const CostSample slow = machine.sample(4, 512, 2.5);
  const CostModel model =
      fit({machine.sample(1, 256), machine.sample(1, 512), machine.sample(2, 256, 1.2), slow});
  CHECK(model.compute().latency == Approx(machine.c0));
  CHECK(model.compute().slope == Approx(machine.c1));
  CHECK(model.predict(4, 512, 2.5).compute == Approx(slow.seconds.compute));
  // several sizes that take the same time
  const Machine flat{.c0 = 0, .floor = 5e-3};
  std::vector<CostSample> samples;
  for (const std::int64_t batch : {8, 16, 32, 64, 128, 512, 1024, 2048})
    samples.push_back(flat.sample(1, batch));
  const CostModel floored = fit(samples);
  CHECK(floored.compute_floor() == Approx(5e-3));
  CHECK(floored.predict(1, 4).compute == Approx(5e-3));
  CHECK(floored.predict(1, 4096).compute == Approx(4096 * flat.c1));
}

TEST_CASE("cost model: one size gives a line; what was never seen costs nothing", "[report]") {
  const CostSample one = machine.sample(1, 100), two = machine.sample(2, 100);
  const CostModel model = fit({one});
  CHECK_FALSE(model.knows_several());
  CHECK(model.compute().latency == 0);
  CHECK(model.predict(1, 100).total() == Approx(one.seconds.total()));
  CHECK(model.predict(1, 200).compute == Approx(2 * one.seconds.compute));
  check_same(fit({two}).predict(2, 100), two.seconds);
  // no NaN, and no negative time
  CHECK(fit({{.devices = 2, .batch = 1}}).predict(2, 10).total() == 0);
  CostSample falling = machine.sample(2, 200);
  falling.seconds.scatter = two.seconds.scatter / 2;  // noise: more bytes in less time
  const CostModel noisy = fit({two, falling});
  CHECK(noisy.scatter().latency >= 0);
  CHECK(noisy.scatter().slope >= 0);
}

TEST_CASE("cost model: the break-even batch is the first where n devices are faster", "[report]") {
  const CostModel model =
      fit({machine.sample(1, 256), machine.sample(1, 512), machine.sample(2, 512),
           machine.sample(2, 2048), machine.sample(4, 2048)});
  for (const int n : {2, 3, 4}) {
    const std::optional<std::int64_t> batch = model.break_even(n);
    REQUIRE(batch);
    CHECK(*batch % n == 0);
    CHECK(model.predict(n, *batch).total() < model.predict(1, *batch).total());
    CHECK(model.predict(n, *batch - n).total() >= model.predict(1, *batch - n).total());
    // By the formula of the line: c1 B (1 - 1/n) > the cost of splitting.
    CHECK(machine.sample(n, *batch).seconds.total() < machine.sample(1, *batch).seconds.total());
  }
  CHECK(model.break_even(1) == 1);
  CHECK_FALSE(model.break_even(2, 2.0));  // two devices that run one at a time
  CHECK(*model.break_even(2, 1.5) > *model.break_even(2));
}

TEST_CASE("cost model: the dominating terms", "[report]") {
  PhaseSeconds s{.scatter = 1,
                 .replicate = 2,
                 .compute = 9,
                 .gather = 3,
                 .reduce = 4,
                 .optimizer = 0.5,
                 .idle = 3.5};
  CHECK(parallel::dominating_term(s) == "compute");
  CHECK(parallel::dominating_cost(s) == "reduce");
  s.idle = 10;
  CHECK(parallel::dominating_term(s) == "other");
  CHECK(parallel::dominating_cost(s) == "other");
}

TEST_CASE("cost model: a line through measured times of copies, and its worst misfit", "[report]") {
  std::vector<CostPoint> points;
  for (double bytes = 4096; bytes <= 1 << 30; bytes *= 4)
    points.push_back({bytes, 3e-6 + bytes / 10e9});
  const parallel::CostLine exact = parallel::fit_cost_line(points);
  CHECK(exact.latency == Approx(3e-6));
  CHECK(1 / exact.slope == Approx(10e9));
  CHECK(parallel::worst_misfit(exact, points) < 1e-9);
  // With relative errors, a large copy that is a tenth too slow hardly changes the latency. A fit
  // of absolute times would lose the latency in the 10 ms.
  points.back().seconds *= 1.1;
  const parallel::CostLine noisy = parallel::fit_cost_line(points);
  CHECK(noisy.latency == Approx(3e-6).epsilon(0.05));
  CHECK(parallel::worst_misfit(noisy, points) == Approx(0.07).margin(0.03));
  points.push_back({1, 0});  // not measured
  CHECK(parallel::fit_cost_line(points).latency == noisy.latency);
  CHECK(parallel::worst_misfit(noisy, points) == Approx(0.07).margin(0.03));
  CHECK(parallel::fit_cost_line(std::span(points).first(1)).latency == 0);
  CHECK(parallel::fit_cost_line({}).slope == 0);
}

TEST_CASE("cost model: errors", "[report]") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const CostModel model = fit({machine.sample(1, 10)});
  const std::pair<const char*, std::function<void()>> rows[] = {
      {"CostModel::fit: expected at least one sample, got none", [] { fit({}); }},
      {"CostModel: expected at least one device and one row, got 1 and 0",
       [] { fit({{.devices = 1, .batch = 0}}); }},
      {"CostModel::fit: expected samples of at least one device, got 0",
       [] { fit({{.devices = 0, .batch = 1}}); }},
      {"CostModel: expected a slowdown of at least 1, got 0.5",
       [] { fit({{.devices = 1, .batch = 1, .slowdown = 0.5}}); }},
      {"CostModel: expected a slowdown of at least 1, got nan",
       [] { fit({{.devices = 1, .batch = 1, .slowdown = kNan}}); }},
      {"CostModel: expected a fit to runs of several devices*asked for 2",
       [&] { (void)model.predict(2, 10); }},
      {"CostModel: expected at least one device and one row, got 1 and 0",
       [&] { (void)model.predict(1, 0); }}};
  for (const auto& row : rows) CHECK_THROWS_TEXT(ArgumentError, row.first, row.second());
}

}  // namespace braid::test
