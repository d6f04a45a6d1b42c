// The report of real steps: phases, bytes, memory, efficiency, predictions.
#include <algorithm>

#include <braid/core/internal/device_clock.hpp>

#include "report_steps.hpp"

namespace braid::test::on_device {

using parallel::DataParallelReport;
using parallel::DeviceMemory;
using parallel::Efficiency;
using parallel::MeasuredRun;
using parallel::PhaseSeconds;
using parallel::Prediction;
using parallel::ReplicaStep;

namespace {

int several() { return up_to(3); }
/// Nothing is sent to the first device.
std::size_t unless_first(int replica, std::size_t bytes) { return replica == 0 ? 0 : bytes; }
bool has(const MeasuredRun& run, const std::function<bool(const trace::Record&)>& f) {
  return std::any_of(run.spans.begin(), run.spans.end(), f);
}

}  // namespace

TEST_CASE("report: every replica's phases add up to the step; bytes", "[report]") {
  if (several() < 2) return;
  const auto n = usize(several());
  constexpr std::int64_t kRows = 30;
  constexpr int kSteps = 4;
  ReportSteps steps(several(), kRows, 32);
  DataParallelReport report("phases");
  steps.record(report, kSteps);
  REQUIRE(report.runs().size() == 1);
  const MeasuredRun& run = report.runs().front();
  CHECK(run.steps == kSteps);
  CHECK(run.devices == steps.devices());
  CHECK(run.batch == kRows);
  CHECK(run.seconds == run.recorded_seconds);
  CHECK(run.dropped == 0);
  CHECK((run.overhead > 0 && run.overhead < 1));
  CHECK(run.critical.total() == Approx(run.recorded_seconds).epsilon(1e-9));
  REQUIRE(run.replicas.size() == n * kSteps);
  std::size_t scattered = 0;
  for (std::size_t i = 0; i < run.replicas.size(); ++i) {
    const ReplicaStep& r = run.replicas[i];
    CAPTURE(r.step, r.replica);
    CHECK(r.step == static_cast<std::int64_t>(i / n));
    CHECK(r.replica == static_cast<int>(i % n));
    CHECK(r.device == run.devices[i % n]);
    for (const auto phase : {&PhaseSeconds::scatter, &PhaseSeconds::replicate,
                             &PhaseSeconds::compute, &PhaseSeconds::gather, &PhaseSeconds::reduce})
      CHECK(r.seconds.*phase > 0);
    CHECK((r.seconds.optimizer > 0) == (r.replica == 0));
    CHECK(r.seconds.idle >= 0);
    CHECK(has(run, [&](const trace::Record& s) {  // the whole step
      return s.phase == trace::Phase::step && s.step == r.step &&
             r.seconds.total() == Approx(static_cast<double>(s.end - s.begin) * 1e-9).epsilon(1e-6);
    }));
    // The optimizer changes all weights, so each step sends them again.
    CHECK(r.replicate_bytes == unless_first(r.replica, steps.bytes()));
    CHECK(r.cached_bytes == 0);
    CHECK(r.reduce_bytes == unless_first(r.replica, steps.bytes()));
    CHECK(r.gather_bytes > 0);
    if (r.step == 0) scattered += r.scatter_bytes;
    for (const char* name : {"forward", "backward"})
      CHECK(has(run, [&](const trace::Record& s) {
        return std::string(s.name) == name && s.phase == trace::Phase::compute &&
               s.device == r.device && s.step == r.step && s.end > s.begin;
      }));
  }
  // all rows except those already on the first device
  CHECK(scattered == (kRows - kRows / n) * 16 * sizeof(float));
  // On devices with clocks, spans have the devices' time.
  const bool clocks = device_clock(device(0)) != nullptr;
  for (const trace::Record& r : run.spans)
    CHECK(r.clock == (clocks ? trace::Clock::device : trace::Clock::host));
  CHECK(report.json().find(clocks ? R"("clock":"device")" : R"("clock":"host")") !=
        std::string::npos);
}

TEST_CASE("report: several forwards of a step, copies of weights once", "[report]") {
  if (several() < 2) return;
  const ReportSteps steps(several(), 30, 32);
  DataParallelReport report;
  for (const int forwards : {1, 2, 3}) {
    auto recording = report.record(steps.devices(), 30);
    std::vector<Tensor> kept;
    for (int i = 0; i < 2; ++i) {
      const auto step = recording.step();
      for (int k = 0; k < forwards; ++k) kept.push_back(steps.model()(steps.x()));
    }
    if (forwards < 3) recording.count_memory(steps.model());
  }
  CHECK(report.runs()[2].memory.empty());  // not counted
  // Unchanged weights are found in the cache.
  for (const ReplicaStep& r : report.runs().front().replicas) {
    const std::size_t bytes = unless_first(r.replica, steps.bytes());
    CHECK(r.replicate_bytes == (r.step == 0 ? bytes : 0));
    CHECK(r.cached_bytes == (r.step == 0 ? 0 : bytes));
  }
  const auto &once = report.runs()[0].memory, &twice = report.runs()[1].memory;
  for (std::size_t i = 1; i < once.size(); ++i) {
    CAPTURE(i);
    CHECK(once[i].replica_cache == steps.bytes());
    CHECK(twice[i].replica_cache == steps.bytes());
    CHECK(twice[i].activations == 2 * once[i].activations);
    CHECK(once[i].activations > 0);
  }
  CHECK(twice[0].outputs == 2 * once[0].outputs);
}

TEST_CASE("report: memory of each device by kind", "[report]") {
  if (several() < 2) return;
  const std::int64_t kRows = 30, kWidth = cut(1024, 128);
  ReportSteps steps(several(), kRows, kWidth), without(several(), kRows, kWidth, false);
  DataParallelReport report;
  steps.record(report, 2);
  without.record(report, 2);
  const auto& with = report.runs()[0].memory;
  REQUIRE(with.size() == usize(several()));
  const DeviceMemory& first = with.front();
  CHECK(first.parameters == steps.bytes());
  CHECK(first.gradients == steps.bytes());
  // momentum, and the step counts on the host
  CHECK(first.optimizer == steps.bytes() + (on_cpu() ? 4 * sizeof(std::int64_t) : 0));
  CHECK(first.replica_cache == 0);
  CHECK(first.outputs == usize(kRows * 4) * sizeof(float));
  for (std::size_t i = 0; i < with.size(); ++i) {
    CAPTURE(i);
    // tanh and the second layer keep at least the hidden rows.
    CHECK(with[i].activations >= usize(kRows * kWidth) / with.size() * sizeof(float));
    CHECK(with[i].activations < usize(16 * kRows * kWidth) * sizeof(float));
    CHECK(with[i].peak >= with[i].activations + with[i].parameters);
    if (i == 0) continue;
    CHECK(with[i].device == steps.devices()[i]);
    CHECK(with[i].parameters + with[i].gradients + with[i].optimizer + with[i].outputs == 0);
    CHECK(with[i].replica_cache == steps.bytes());
    CHECK(report.runs()[1].memory[i].replica_cache == 0);
  }
}

TEST_CASE("report: with a replicated optimizer every device steps, and holds weights", "[report]") {
  if (several() < 2) return;
  const ReportSteps like(several(), 30, 32);  // with the same model
  const DataParallel model(clone(like.model().module), like.devices());
  parallel::ReplicatedOptimizer optimizer(model, [](const std::vector<Tensor>& p) {
    return optim::SGD(p, {.lr = 1e-3, .momentum = 0.9});
  });
  DataParallelReport report;
  {
    auto recording = report.record(like.devices(), 30);
    for (int i = 0; i < 2; ++i) {
      const auto step = recording.step();
      optimizer.zero_grad();
      square(model(like.x())).mean().backward();
      optimizer.step();
    }
    recording.count_memory(model, optimizer);
  }
  const MeasuredRun& run = report.runs().front();
  for (const ReplicaStep& r : run.replicas) {
    CAPTURE(r.step, r.replica);
    CHECK(r.seconds.optimizer > 0);
    CHECK(r.seconds.reduce > 0);
    CHECK(r.seconds.replicate > 0);
    // the copies existed before the run
    CHECK(r.replicate_bytes == 0);
    // found by the forward; the step sends nothing
    CHECK(r.cached_bytes == unless_first(r.replica, like.bytes()));
    // gradients are received, sums are sent
    CHECK(r.reduce_bytes == unless_first(r.replica, 2 * like.bytes()));
  }
  for (std::size_t i = 0; i < run.memory.size(); ++i) {
    CAPTURE(i);
    CHECK(run.memory[i].optimizer >= like.bytes());
    CHECK(run.memory[i].replica_cache == (i == 0 ? 0 : like.bytes()));
    CHECK(run.memory[i].parameters == (i == 0 ? like.bytes() : 0));
  }
}

TEST_CASE("report: efficiency, strong and weak, beside the ceiling", "[report]") {
  if (several() < 2) return;
  DataParallelReport report;
  ReportSteps(1, 24, 8).record(report, 1, 8e-3);
  ReportSteps(1, 48, 8).record(report, 1, 15e-3);
  ReportSteps(2, 48, 8).record(report, 1, 10e-3);
  CHECK(report.efficiencies().size() == 2);
  CHECK_FALSE(report.efficiencies()[0].ceiling);
  report.add_independent(2, 24, 8.5e-3);
  const std::vector<Efficiency> list = report.efficiencies();
  REQUIRE(list.size() == 2);
  CHECK(list[0].scaling == Efficiency::Scaling::strong);
  CHECK(list[0].value == Approx(15.0 / (2 * 10)));
  CHECK(list[0].ceiling.value() == Approx(15.0 / (2 * 8.5)));
  CHECK(list[1].scaling == Efficiency::Scaling::weak);
  CHECK(list[1].value == Approx(8.0 / 10));
  CHECK(list[1].ceiling.value() == Approx(8.0 / 8.5));
  for (const Efficiency& e : list) {
    CHECK(e.devices == 2);
    CHECK(e.batch == 48);
    CHECK((e.simulated || !on_cpu()));
  }
  CHECK(report.slowdown(report.runs()[2]) == Approx(8.5 / 8));
  CHECK(report.slowdown(report.runs()[0]) == 1);
  CHECK((report.runs()[2].simulated || !on_cpu()));
  // The ceiling of an uneven batch is that of its largest chunk.
  DataParallelReport uneven;
  ReportSteps(1, 47, 8).record(uneven, 1, 15e-3);
  ReportSteps(2, 47, 8).record(uneven, 1, 10e-3);
  uneven.add_independent(2, 24, 8.5e-3);
  REQUIRE(uneven.efficiencies().size() == 1);
  CHECK(uneven.efficiencies()[0].scaling == Efficiency::Scaling::strong);
  CHECK(uneven.efficiencies()[0].ceiling.value() == Approx(15.0 / (2 * 8.5)));
}

TEST_CASE("report: predictions are of the time that was set, by the other runs alone", "[report]") {
  constexpr double kSet = 50;  // s; no recorded step is near it
  DataParallelReport report;
  ReportSteps(1, 32, 64).record(report, 6, kSet);
  REQUIRE(report.predictions().size() == 1);
  CHECK(report.predictions()[0].predicted == Approx(32 / kSet));
  CHECK(report.predictions()[0].terms.compute < kSet);
  if (several() < 2) return;
  ReportSteps(1, 64, 64).record(report, 6, 2 * kSet);
  ReportSteps(2, 128, 64).record(report, 6, 2 * kSet);
  ReportSteps(2, 64, 64).record(report, 6, kSet);
  const std::vector<Prediction> list = report.predictions();
  REQUIRE(list[3].predicted_apart);
  // a prediction from the recorded steps would be thousands of times as high
  CHECK(*list[3].predicted_apart < 10 * 64 / kSet);
  DataParallelReport others;
  ReportSteps(1, 48, 8).record(others, 2, 15e-3);
  ReportSteps(2, 48, 8).record(others, 2, 10e-3);
  ReportSteps(2, 96, 8).record(others, 2, 18e-3);
  others.add_independent(2, 24, 9e-3);  // used with T(1) of 24 rows, once that exists
  const auto apart = [&](double seconds) {
    DataParallelReport with = others;
    ReportSteps(1, 24, 8).record(with, 2, seconds);
    return with.predictions().back().predicted_apart;
  };
  const std::optional<double> slow = apart(8e-3), fast = apart(3e-3);
  REQUIRE((slow && fast));
  CHECK(*slow == *fast);
}

TEST_CASE("report: the prediction of a run stands beside its measurement", "[report]") {
  DataParallelReport report;
  ReportSteps(1, 32, 64).record(report, 6);
  for (int n = 1; n <= several(); ++n) ReportSteps(n, 64, 64).record(report, 6);
  const std::vector<Prediction> list = report.predictions();
  REQUIRE(list.size() == report.runs().size());
  for (const Prediction& p : list) {
    CAPTURE(p.devices, p.batch, p.measured, p.predicted);
    CHECK(p.measured > 0);
    CHECK(p.predicted > 0);
    CHECK(p.terms.total() == Approx(static_cast<double>(p.batch) / p.predicted));
    CHECK((p.devices > 1 || !p.break_even));
  }
  // a single other run gives no prediction
  CHECK(list[0].predicted_apart.has_value() == (several() > 1));
  if (list[0].predicted_apart) CHECK(*list[0].predicted_apart != list[0].predicted);
  // A run that was only timed has no terms, so no prediction; an empty report has none either.
  { (void)report.record(group(1), 5); }
  CHECK(report.predictions().size() == list.size());
  CHECK(DataParallelReport().predictions().empty());
  CHECK_THROWS_TEXT(ArgumentError, "CostModel::fit: expected at least one sample, got none",
                    DataParallelReport().cost_model());
}

TEST_CASE("report: errors, and a recording that is given up leaves the way free", "[report]") {
  DataParallelReport report;
  CHECK_THROWS_TEXT(ArgumentError,
                    "DataParallelReport::record: expected at least one device, got none",
                    report.record(std::vector<Device>{}, 8));
  CHECK_THROWS_TEXT(ArgumentError,
                    "DataParallelReport::record: expected a batch of at least one row, got 0",
                    report.record(group(1), 0));
  CHECK_THROWS_TEXT(DeviceError, "DataParallelReport::record: expected each device once*twice",
                    report.record({device(0), device(0)}, 8));
  CHECK_THROWS_TEXT(DeviceError, "*cpu:99*", report.record({Device("cpu:99")}, 8));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "add_independent: expected at least 2 devices, 1 row and a positive time, got 1, 8 and 1 s",
      report.add_independent(1, 8, 1));
  CHECK_THROWS_TEXT(ArgumentError, "add_independent: *got 2, 8 and inf s",
                    report.add_independent(2, 8, INFINITY));
  {
    auto recording = report.record(group(1), 8);
    CHECK_THROWS_TEXT(Error, "trace::Recording: expected no other recording*",
                      report.record(group(1), 8));
    CHECK_THROWS_TEXT(ArgumentError, "set_seconds: expected a positive number, got 0",
                      recording.set_seconds(0));
    recording.finish();
    recording.finish();  // once
  }
  CHECK(report.runs().size() == 1);
  { (void)report.record(group(1), 8); }
  CHECK(report.runs().size() == 2);
}

}  // namespace braid::test::on_device
