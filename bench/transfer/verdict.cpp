#include "transfer/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "transfer/pays.hpp"
#include "transfer/prediction.hpp"

namespace bench::transfer {
namespace {

using braid::Device;

const Curve& curve_of(const std::vector<Column>& columns, const char* direction) {
  for (const Column& c : columns)
    if (c.direction == direction && c.memory != "pinned" && c.mode == "blocking" && c.call == "to")
      return c.curve;
  throw braid::Error(std::string("bench_transfer: nothing was measured in the direction ") +
                     direction);
}

std::string text_of_rows(const std::optional<std::int64_t>& rows) {
  return rows ? "from " + std::to_string(*rows) : "never";
}
Json& set_rows(Json& json, const char* key, const std::optional<std::int64_t>& rows) {
  return rows ? json.set(key, static_cast<int>(*rows)) : json.set(key, nullptr);
}

}  // namespace

void print_verdict(const Ends& ends, bool emulation, const std::vector<Column>& columns, int rounds,
                   std::vector<Json>& rows) {
  // On the CPU the host's device is one of the two; it has the numbers already.
  const bool cpu = !ends.queued(), pair = cpu || ends.two;
  const Device device = cpu ? ends.host : ends.first, partner = cpu ? ends.first : ends.second;
  const Rates rates =
      measure_rates(device, pair ? std::optional(partner) : std::nullopt, emulation, rounds);
  Json entry;
  entry.set("name", "rates")
      .set("gflops", rates.alone * 1e-9)
      .set("slowdown", rates.slowdown)
      .set("host_gflops", rates.host * 1e-9)
      .set("hand_over_us", rates.hand_over * 1e6);
  rows.push_back(entry.set("simulated", cpu || emulation));
  const std::string name = braid::str(device), other = braid::str(partner);
  std::printf("\na matrix product on %s: %.3g GFLOP/s", name.c_str(), rates.alone * 1e-9);
  if (pair)
    std::printf(
        "; while %s computes too, it takes %.3f times as long; a hand-over to both takes %.1f us",
        other.c_str(), rates.slowdown, rates.hand_over * 1e6);
  std::printf("\n");
  if (!cpu) {
    const Curve &up = curve_of(columns, "H2D"), &down = curve_of(columns, "D2H");
    const double slope = (up.large.slope + down.large.slope) / 2,
                 saved = 1 / rates.host - 1 / rates.alone;
    if (saved > 0)
      std::printf(
          "from the host to %s and back, instead of computing on cpu:0 at %.3g GFLOP/s: pays from "
          "%.3g FLOP a byte on\n",
          name.c_str(), rates.host * 1e-9, slope / saved);
    else
      std::printf("from the host to %s and back: never pays, cpu:0 computes at %.3g GFLOP/s\n",
                  name.c_str(), rates.host * 1e-9);
    Json row;
    rows.push_back(row.set("name", "offload")
                       .set("flop_per_byte", saved > 0 ? slope / saved : NAN)
                       .set("simulated", emulation));
  }
  if (!pair) return;
  const Roads roads{curve_of(columns, cpu ? "H2D" : "D2D"), curve_of(columns, cpu ? "D2H" : "D2D"),
                    curve_of(columns, "local")};
  const std::optional<double> pays = work_per_byte(rates, roads, 1),
                              halves = work_per_byte(rates, roads, kHalf);
  const auto text = [](const std::optional<double>& v) {
    char buffer[48];
    if (v) std::snprintf(buffer, sizeof buffer, "from %.3g FLOP a byte on", *v);
    return v ? std::string(buffer) : std::string("never");
  };
  std::printf(
      "half of the work to %s, and back: faster %s, half the time (%.1f times as fast) %s\n",
      other.c_str(), text(pays).c_str(), kHalf, text(halves).c_str());
  Json row;
  row.set("name", "work_per_byte")
      .set("faster", pays.value_or(NAN))
      .set("half_the_time", halves.value_or(NAN))
      .set("half_means", kHalf);
  rows.push_back(row.set("simulated", cpu || emulation));
  const auto layer = [&](const std::string& what, const Layer& l) {
    const auto faster = rows_from(l, rates, roads, 1), half = rows_from(l, rates, roads, kHalf);
    std::printf("  %-42s faster %s rows, half the time %s\n", what.c_str(),
                text_of_rows(faster).c_str(), text_of_rows(half).c_str());
    Json json;
    json.set("name", "rows_from").set("what", what);
    set_rows(json, "faster", faster);
    rows.push_back(set_rows(json, "half_the_time", half).set("simulated", cpu || emulation));
    return faster;
  };
  for (const double width : {16.0, 64.0, 256.0, 1024.0, 4096.0}) {
    char what[80];
    std::snprintf(what, sizeof what, "Linear(%.0f, %.0f) forward, %.0f FLOP a byte", width, width,
                  width / 4);
    (void)layer(what, linear_forward(width, width));
  }
  const auto mlp = layer("MLP 784-2048-2048-10, a training step", mlp_step({784, 2048, 2048, 10}));
  if (!mlp || emulation) return;
  // Compares the prediction with measured steps.
  std::vector<std::int64_t> counts;
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0, 16.0})
    counts.push_back(
        std::max<std::int64_t>(2, std::llround(factor * static_cast<double>(*mlp) / 2) * 2));
  for (const MeasuredStep& s : measure_mlp(device, partner, counts, rounds)) {
    const double gain = s.one_us / s.two_us;
    std::printf(
        "  measured with %4lld rows: one device %8.2f ms, two %8.2f ms: %.2f times as fast (+-%.0f "
        "%%)\n",
        static_cast<long long>(s.rows), s.one_us * 1e-3, s.two_us * 1e-3, gain, 100 * s.noise);
    Json json;
    json.set("name", "mlp_step")
        .set("rows", static_cast<int>(s.rows))
        .set("one_us", s.one_us)
        .set("two_us", s.two_us)
        .set("gain", gain)
        .set("noise", s.noise);
    rows.push_back(json.set("simulated", cpu));
  }
}

}  // namespace bench::transfer
