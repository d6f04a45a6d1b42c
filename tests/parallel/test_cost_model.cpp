// The cost model finds the numbers that measurements were made from, and says from which batch on
// devices pay.
#include <braid/parallel/cost_model.hpp>

#include <cmath>
#include <limits>

#include "support/errors.hpp"

namespace braid::test {

using parallel::Collective;
using parallel::CostModel;
using parallel::CostSample;
using parallel::PhaseSeconds;

namespace {

/// What measurements are made from.
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

void check_same(const PhaseSeconds& got, const PhaseSeconds& want) {
  CHECK(got.scatter == Approx(want.scatter));
  CHECK(got.replicate == Approx(want.replicate));
  CHECK(got.compute == Approx(want.compute));
  CHECK(got.gather == Approx(want.gather));
  CHECK(got.reduce == Approx(want.reduce));
  CHECK(got.optimizer == Approx(want.optimizer));
  CHECK(got.idle == Approx(want.idle));
}

}  // namespace

TEST_CASE("cost model: from exact measurements it predicts what was not measured",
          "[parallel][report]") {
  for (const Collective collective : {Collective::star, Collective::ring}) {
    const Machine machine;
    std::vector<CostSample> samples = {machine.sample(1, 256), machine.sample(1, 512)};
    for (const int n : {2, 4}) {
      samples.push_back(machine.sample(n, 512, 1, collective));
      samples.push_back(machine.sample(n, 2048, 1, collective));
    }
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

TEST_CASE(
    "cost model: compute on devices that slow each other down is brought back to one device's",
    "[parallel][report]") {
  const Machine machine;
  const CostSample samples[] = {machine.sample(1, 256), machine.sample(1, 512),
                                machine.sample(2, 256, 1.2), machine.sample(4, 512, 2.5)};
  const CostModel model = CostModel::fit(samples);
  CHECK(model.compute().latency == Approx(machine.c0));
  CHECK(model.compute().slope == Approx(machine.c1));
  CHECK(model.predict(4, 512, 2.5).compute == Approx(samples[3].seconds.compute));
}

TEST_CASE("cost model: several small sizes that take the same time give a floor",
          "[parallel][report]") {
  Machine machine;
  machine.c0 = 0;
  machine.floor = 5e-3;
  std::vector<CostSample> samples;
  for (const std::int64_t batch : {8, 16, 32, 64, 128, 512, 1024, 2048})
    samples.push_back(machine.sample(1, batch));
  const CostModel model = CostModel::fit(samples);
  CHECK(model.compute_floor() == Approx(5e-3));
  CHECK(model.predict(1, 4).compute == Approx(5e-3));
  CHECK(model.predict(1, 4096).compute == Approx(4096 * machine.c1));
}

TEST_CASE("cost model: one size gives a line through the origin; what was never seen costs nothing",
          "[parallel][report]") {
  const Machine machine;
  const CostSample one[] = {machine.sample(1, 100)};
  const CostModel model = CostModel::fit(one);
  CHECK_FALSE(model.knows_several());
  CHECK(model.compute().latency == 0);
  CHECK(model.predict(1, 100).total() == Approx(one[0].seconds.total()));
  CHECK(model.predict(1, 200).compute == Approx(2 * one[0].seconds.compute));
  const CostSample two[] = {machine.sample(2, 100)};
  check_same(CostModel::fit(two).predict(2, 100), two[0].seconds);
  // Not a number of nothing, and no negative time.
  const CostSample empty[] = {{.devices = 2, .batch = 1}};
  CHECK(CostModel::fit(empty).predict(2, 10).total() == 0);
  CostSample falling[] = {machine.sample(2, 100), machine.sample(2, 200)};
  falling[1].seconds.scatter = falling[0].seconds.scatter / 2;  // noise: more bytes in less time
  const CostModel noisy = CostModel::fit(falling);
  CHECK((noisy.scatter().latency >= 0 && noisy.scatter().slope >= 0));
}

TEST_CASE("cost model: the break-even batch is the first from which on n devices are faster",
          "[parallel][report]") {
  const Machine machine;
  const CostSample samples[] = {machine.sample(1, 256), machine.sample(1, 512),
                                machine.sample(2, 512), machine.sample(2, 2048),
                                machine.sample(4, 2048)};
  const CostModel model = CostModel::fit(samples);
  for (const int n : {2, 3, 4}) {
    const std::optional<std::int64_t> batch = model.break_even(n);
    REQUIRE(batch);
    CHECK(*batch % n == 0);
    CHECK(model.predict(n, *batch).total() < model.predict(1, *batch).total());
    CHECK(model.predict(n, *batch - n).total() >= model.predict(1, *batch - n).total());
    // By the formula of the line: c1 B (1 - 1/n) > what splitting costs.
    CHECK(machine.sample(n, *batch).seconds.total() < machine.sample(1, *batch).seconds.total());
  }
  CHECK(model.break_even(1) == 1);
  CHECK_FALSE(model.break_even(2, 2.0));  // two devices that take turns
  CHECK(*model.break_even(2, 1.5) > *model.break_even(2));
}

TEST_CASE("cost model: the dominating terms", "[parallel][report]") {
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

TEST_CASE(
    "cost model: a line through measured times of copies, and how far it is from the worst of them",
    "[parallel][report]") {
  using parallel::CostPoint;
  std::vector<CostPoint> points;
  for (double bytes = 4096; bytes <= 1 << 30; bytes *= 4)
    points.push_back({bytes, 3e-6 + bytes / 10e9});
  const parallel::CostLine exact = parallel::fit_cost_line(points);
  CHECK(exact.latency == Approx(3e-6));
  CHECK(1 / exact.slope == Approx(10e9));
  CHECK(parallel::worst_misfit(exact, points) < 1e-9);
  // Relative errors: a large copy that is a tenth too slow leaves the latency nearly as it is,
  // which a fit to seconds would lose in the 10 ms.
  points.back().seconds *= 1.1;
  const parallel::CostLine noisy = parallel::fit_cost_line(points);
  CHECK(noisy.latency == Approx(3e-6).epsilon(0.05));
  CHECK(parallel::worst_misfit(noisy, points) == Approx(0.07).margin(0.03));
  points.push_back({1, 0});  // nothing was measured
  CHECK(parallel::fit_cost_line(points).latency == noisy.latency);
  CHECK(parallel::worst_misfit(noisy, points) == Approx(0.07).margin(0.03));
  CHECK(parallel::fit_cost_line(std::span(points).first(1)).latency == 0);
  CHECK(parallel::fit_cost_line({}).slope == 0);
}

TEST_CASE("cost model: errors", "[parallel][report]") {
  const Machine machine;
  CHECK_THROWS_TEXT(ArgumentError, "CostModel::fit: expected at least one sample, got none",
                    CostModel::fit({}));
  const CostSample no_rows[] = {{.devices = 1, .batch = 0}},
                   no_devices[] = {{.devices = 0, .batch = 1}},
                   fast[] = {{.devices = 1, .batch = 1, .slowdown = 0.5}};
  const CostSample nan[] = {
      {.devices = 1, .batch = 1, .slowdown = std::numeric_limits<double>::quiet_NaN()}};
  CHECK_THROWS_TEXT(ArgumentError,
                    "CostModel: expected at least one device and one row, got 1 and 0",
                    CostModel::fit(no_rows));
  CHECK_THROWS_TEXT(ArgumentError, "CostModel::fit: expected samples of at least one device, got 0",
                    CostModel::fit(no_devices));
  CHECK_THROWS_TEXT(ArgumentError, "CostModel: expected a slowdown of at least 1, got 0.5",
                    CostModel::fit(fast));
  CHECK_THROWS_TEXT(ArgumentError, "CostModel: expected a slowdown of at least 1, got nan",
                    CostModel::fit(nan));
  const CostSample one[] = {machine.sample(1, 10)};
  CHECK_THROWS_TEXT(ArgumentError,
                    "CostModel: expected a fit to runs of several devices*asked for 2",
                    CostModel::fit(one).predict(2, 10));
  CHECK_THROWS_TEXT(ArgumentError,
                    "CostModel: expected at least one device and one row, got 1 and 0",
                    CostModel::fit(one).predict(1, 0));
}

}  // namespace braid::test
