#include "report/write_json.hpp"

#include <algorithm>

#include <braid/core/error.hpp>
#include <braid/parallel/report.hpp>

#include "report/ranks.hpp"

namespace braid::parallel {
namespace {

void write_seconds(JsonText& json, std::string_view name, const PhaseSeconds& s, const char* idle) {
  json.key(name).object();
  json.field("scatter", s.scatter)
      .field("replicate", s.replicate)
      .field("compute", s.compute)
      .field("gather", s.gather);
  json.field("reduce", s.reduce).field("optimizer", s.optimizer).field(idle, s.idle).end();
}

void write_line(JsonText& json, std::string_view name, const CostLine& line) {
  json.key(name).object().field("latency", line.latency).field("slope", line.slope).end();
}

void write_number(JsonText& json, std::string_view name, const std::optional<double>& value) {
  if (value) json.field(name, *value);
  else json.key(name).null();
}

void write_ranks(JsonText& json, const std::vector<RankRun>& ranks) {
  json.line().key("ranks").array();
  for (const RankRun& r : ranks) {
    const CollectiveTotals sum = totals_of(r);
    json.line().object().field("rank", r.rank).key("devices").array();
    for (const Device d : r.devices) json.value(str(d));
    json.end()
        .field("clock_offset_ns", r.clock_offset)
        .field("clock_uncertainty_ns", r.clock_uncertainty)
        .field("spans", r.spans.size())
        .field("dropped_spans", r.dropped);
    json.field("collectives", r.collectives.size())
        .field("collective_bytes", sum.bytes)
        .field("collective_seconds", sum.seconds)
        .field("waited_seconds", sum.waited)
        .end();
  }
  json.end();
}

void write_run(JsonText& json, const MeasuredRun& run, const Prediction* prediction) {
  const auto rows = static_cast<double>(run.batch);
  json.object().field("devices", run.devices.size()).key("names").array();
  for (const Device d : run.devices) json.value(str(d));
  json.end()
      .field("batch", run.batch)
      .field("simulated", run.simulated)
      .field("seconds", run.seconds)
      .field("recorded_seconds", run.recorded_seconds);
  json.field("samples_per_s", run.seconds > 0 ? rows / run.seconds : 0.0);
  if (prediction != nullptr) {
    json.field("predicted", prediction->predicted);
    write_number(json, "predicted_apart", prediction->predicted_apart);
    json.field("dominating_term", dominating_term(prediction->terms))
        .field("dominating_cost", dominating_cost(prediction->terms));
    json.key("break_even_batch");
    if (prediction->break_even) json.value(*prediction->break_even);
    else json.null();
    write_seconds(json, "predicted_seconds", prediction->terms, "other");
  }
  json.field("steps", run.steps)
      .field("spans", run.spans.size())
      .field("dropped_spans", run.dropped)
      .field("overhead", run.overhead);
  const bool device_clock =
      std::any_of(run.spans.begin(), run.spans.end(),
                  [](const trace::Record& r) { return r.clock == trace::Clock::device; });
  json.field("clock", device_clock ? "device" : "host");
  write_seconds(json, "critical_seconds", run.critical, "other");
  json.line().key("replicas").array();
  for (const ReplicaStep& r : run.replicas) {
    json.line()
        .object()
        .field("step", r.step)
        .field("replica", r.replica)
        .field("device", str(r.device));
    write_seconds(json, "seconds", r.seconds, "idle");
    json.field("scatter_bytes", r.scatter_bytes)
        .field("replicate_bytes", r.replicate_bytes)
        .field("cached_bytes", r.cached_bytes);
    json.field("gather_bytes", r.gather_bytes).field("reduce_bytes", r.reduce_bytes).end();
  }
  json.end().line().key("memory").array();
  for (const DeviceMemory& m : run.memory) {
    json.object()
        .field("device", str(m.device))
        .field("parameters", m.parameters)
        .field("gradients", m.gradients)
        .field("optimizer", m.optimizer);
    json.field("activations", m.activations)
        .field("replica_cache", m.replica_cache)
        .field("outputs", m.outputs)
        .field("peak", m.peak)
        .end();
  }
  json.end();
  if (run.ranks != nullptr) write_ranks(json, *run.ranks);
  json.end();
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  if (io::is_utf8(text)) return std::string(text);
  constexpr std::size_t kLongest = 4;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    while (length <= kLongest && i + length <= text.size() && !io::is_utf8(text.substr(i, length)))
      ++length;
    if (length > kLongest || i + length > text.size()) out += "\xef\xbf\xbd", ++i;
    else out += text.substr(i, length), i += length;
  }
  return out;
}

void write_fields(JsonText& json, const DataParallelReport& report) {
  const std::vector<Prediction> predictions = report.predictions();
  const auto& runs = report.runs();
  json.field("title", report.title());
  json.field("simulated", std::any_of(runs.begin(), runs.end(),
                                      [](const MeasuredRun& r) { return r.simulated; }));
  json.line().key("efficiencies").array();
  for (const Efficiency& e : report.efficiencies()) {
    json.line()
        .object()
        .field("scaling", e.scaling == Efficiency::Scaling::strong ? "strong" : "weak")
        .field("devices", e.devices)
        .field("batch", e.batch);
    json.field("efficiency", e.value);
    write_number(json, "ceiling", e.ceiling);
    json.field("simulated", e.simulated).end();
  }
  json.end().line().key("cost_model");
  if (predictions.empty()) {
    json.null();
  } else {
    const CostModel model = report.cost_model();
    json.object().field("collective", model.collective() == Collective::star ? "star" : "ring");
    write_line(json, "compute", model.compute());
    json.field("compute_floor", model.compute_floor());
    write_line(json, "scatter", model.scatter());
    write_line(json, "replicate", model.replicate());
    write_line(json, "gather", model.gather());
    write_line(json, "reduce", model.reduce());
    json.field("optimizer", model.optimizer());
    write_line(json, "other", model.other());
    write_line(json, "other_of_group", model.other_of_group());
    json.end();
  }
  json.line().key("runs").array();
  std::size_t predicted = 0;  // runs without steps have no prediction
  for (const MeasuredRun& run : runs)
    write_run(json.line(), run, run.steps > 0 ? &predictions[predicted++] : nullptr);
  json.end();
}

std::string DataParallelReport::json() const {
  JsonText json;
  json.object();
  write_fields(json, *this);
  return json.end().text() + "\n";
}

}  // namespace braid::parallel
