// Writes the report as tables for a terminal.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include <braid/core/error.hpp>
#include <braid/parallel/report.hpp>

#include "report/json_text.hpp"
#include "report/phases.hpp"
#include "report/ranks.hpp"

namespace braid::parallel {
namespace {

[[gnu::format(printf, 2, 3)]] void add(std::string& out, const char* format, ...) {
  char line[400];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  out += line;
}

std::string size(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) bytes /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}
std::string size(std::size_t bytes) { return size(static_cast<double>(bytes)); }

/// Replaces control characters, including C1 (U+0080 to U+009F): they must not reach a terminal.
std::string printable(std::string_view text) {
  const std::string whole = valid_utf8(text);
  std::string out;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto c = static_cast<unsigned char>(whole[i]);
    // whole is well-formed, so a byte follows c2.
    const bool c1 = c == 0xc2 && static_cast<unsigned char>(whole[i + 1]) < 0xa0;
    out += c1 || c < 0x20 || c == 0x7f ? '?' : whole[i];
    i += c1;
  }
  return out;
}

void add_seconds(std::string& out, const char* head, const PhaseSeconds& s) {
  add(out, "  %-16s %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f", head, 1e3 * s.scatter,
      1e3 * s.replicate, 1e3 * s.compute, 1e3 * s.gather, 1e3 * s.reduce, 1e3 * s.optimizer,
      1e3 * s.idle);
}

/// Returns the medians over the steps of a replica, without the first step if there are several.
ReplicaStep usual(const MeasuredRun& run, std::size_t replica) {
  ReplicaStep result{.replica = static_cast<int>(replica), .device = run.devices[replica]};
  const auto of = [&](auto get) {
    std::vector<double> values;
    for (std::size_t i = replica + (run.steps > 1 ? run.devices.size() : 0);
         i < run.replicas.size(); i += run.devices.size())
      values.push_back(static_cast<double>(get(run.replicas[i])));
    return median(std::move(values));
  };
  for (double PhaseSeconds::* const field :
       {&PhaseSeconds::scatter, &PhaseSeconds::replicate, &PhaseSeconds::compute,
        &PhaseSeconds::gather, &PhaseSeconds::reduce, &PhaseSeconds::optimizer,
        &PhaseSeconds::idle})
    result.seconds.*field = of([field](const ReplicaStep& r) { return r.seconds.*field; });
  result.replicate_bytes =
      static_cast<std::uint64_t>(of([](const ReplicaStep& r) { return r.replicate_bytes; }));
  result.cached_bytes =
      static_cast<std::uint64_t>(of([](const ReplicaStep& r) { return r.cached_bytes; }));
  return result;
}

/// The number of characters of UTF-8 text.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void add_ranks(std::string& out, const std::vector<RankRun>& ranks) {
  constexpr std::size_t kMostNamed = 4;  // devices of a rank
  add(out, "  %-20s %14s %16s %8s %6s %12s %14s %12s %12s\n", "rank", "clock off, us",
      "uncertain by, us", "spans", "lost", "collectives", "bytes", "ms in them", "ms waited");
  for (const RankRun& r : ranks) {
    const CollectiveTotals sum = totals_of(r);
    std::string name = str("rank ", r.rank);
    for (std::size_t i = 0; i < r.devices.size() && i < kMostNamed; ++i)
      name += str(i == 0 ? " · " : ", ", r.devices[i]);
    if (r.devices.size() > kMostNamed) name += ", …";
    for (std::size_t i = characters(name); i < 20; ++i) name += ' ';  // printf would count bytes
    add(out, "  %s %14.1f %16.1f %8zu %6llu %12zu %14s %12.3f %12.3f\n", name.c_str(),
        1e-3 * static_cast<double>(r.clock_offset), 1e-3 * static_cast<double>(r.clock_uncertainty),
        r.spans.size(), static_cast<unsigned long long>(r.dropped), r.collectives.size(),
        size(sum.bytes).c_str(), 1e3 * sum.seconds, 1e3 * sum.waited);
  }
}

void add_run(std::string& out, const MeasuredRun& run) {
  const double rate = run.seconds > 0 ? static_cast<double>(run.batch) / run.seconds : 0;
  add(out, "\n%zu %s, batch %lld: %.3f ms a step, %.0f samples/s%s\n", run.devices.size(),
      run.devices.size() == 1 ? "device" : "devices", static_cast<long long>(run.batch),
      1e3 * run.seconds, rate, run.simulated ? " (simulated)" : "");
  add(out, "  %-16s %10s %10s %10s %10s %10s %10s %10s %12s %12s\n", "ms", "scatter", "replicate",
      "compute", "gather", "reduce", "optimizer", "idle", "sent", "cached");
  for (std::size_t i = 0; run.steps > 0 && i < run.devices.size(); ++i) {
    const ReplicaStep row = usual(run, i);
    add_seconds(out, str(i, "  ", row.device).c_str(), row.seconds);
    add(out, " %12s %12s\n", size(row.replicate_bytes).c_str(), size(row.cached_bytes).c_str());
  }
  add_seconds(out, "the whole step", run.critical);
  const bool device_clock =
      std::any_of(run.spans.begin(), run.spans.end(),
                  [](const trace::Record& r) { return r.clock == trace::Clock::device; });
  add(out,
      "\n  %lld steps of %.3f ms recorded, %zu spans (%llu lost), %s; the recorder takes %.2f %%\n",
      static_cast<long long>(run.steps), 1e3 * run.recorded_seconds, run.spans.size(),
      static_cast<unsigned long long>(run.dropped),
      device_clock ? "the devices' clocks" : "the host's clock", 100 * run.overhead);
  if (run.ranks != nullptr) add_ranks(out, *run.ranks);
  if (run.memory.empty()) return;
  add(out, "  %-16s %10s %10s %10s %12s %14s %10s %10s\n", "memory", "parameters", "gradients",
      "optimizer", "activations", "replica cache", "outputs", "peak");
  double sum = 0;
  for (const DeviceMemory& m : run.memory) {
    add(out, "  %-16s %10s %10s %10s %12s %14s %10s %10s\n", str(m.device).c_str(),
        size(m.parameters).c_str(), size(m.gradients).c_str(), size(m.optimizer).c_str(),
        size(m.activations).c_str(), size(m.replica_cache).c_str(), size(m.outputs).c_str(),
        size(m.peak).c_str());
    sum += static_cast<double>(m.peak);
  }
  if (run.memory.size() > 1 && sum > 0)
    add(out, "  peak of %s / mean of all: %.2f\n", str(run.memory.front().device).c_str(),
        static_cast<double>(run.memory.front().peak) * static_cast<double>(run.memory.size()) /
            sum);
}

void add_model(std::string& out, const DataParallelReport& report,
               const std::vector<Prediction>& predictions) {
  const CostModel m = report.cost_model();
  const auto rate = [](double slope) {
    return slope > 0 ? size(1 / slope) + "/s" : std::string("-");
  };
  add(out,
      "\ncost model: c(b) = max(%.3f ms, %.3f ms + %.3f us b); optimizer %.3f ms; other %.3f ms + "
      "%.3f us B",
      1e3 * m.compute_floor(), 1e3 * m.compute().latency, 1e6 * m.compute().slope,
      1e3 * m.optimizer(), 1e3 * m.other().latency, 1e6 * m.other().slope);
  if (m.knows_several()) {
    add(out, ", and %.3f ms + %.3f ms (n - 1) with several devices\n",
        1e3 * m.other_of_group().latency, 1e3 * m.other_of_group().slope);
    const std::pair<const char*, const CostLine*> lines[] = {{"scatter", &m.scatter()},
                                                             {"replicate", &m.replicate()},
                                                             {"gather", &m.gather()},
                                                             {"reduce", &m.reduce()}};
    for (const auto& [name, line] : lines)
      add(out, "  %-10s %.3f ms, then %s\n", name, 1e3 * line->latency, rate(line->slope).c_str());
  } else {
    out += '\n';
  }
  add(out, "  %7s %9s %14s %14s %7s %14s  %-10s %-10s %s\n", "devices", "batch", "measured",
      "predicted", "off", "by the others", "most time", "most cost", "pays from");
  for (const Prediction& p : predictions) {
    add(out, "  %7d %9lld %10.0f s/s %10.0f s/s %6.1f%%", p.devices,
        static_cast<long long>(p.batch), p.measured, p.predicted,
        p.measured > 0 ? 100 * (p.predicted / p.measured - 1) : 0);
    if (p.predicted_apart) add(out, " %10.0f s/s", *p.predicted_apart);
    else add(out, " %14s", "-");
    const std::string_view term = dominating_term(p.terms), cost = dominating_cost(p.terms);
    add(out, "  %-10.*s %-10.*s %s\n", static_cast<int>(term.size()), term.data(),
        static_cast<int>(cost.size()), cost.data(),
        p.devices == 1 ? "-"
        : p.break_even ? str("batch ", *p.break_even).c_str()
                       : "never");
  }
}

}  // namespace

std::string DataParallelReport::text() const {
  std::string out = "DataParallel report: " + printable(title_) + "\n";
  if (std::any_of(runs_.begin(), runs_.end(), [](const MeasuredRun& r) { return r.simulated; }))
    out +=
        "simulated: true (logical devices share a processor or a GPU: how they scale says nothing "
        "about separate ones)\n";
  for (const MeasuredRun& run : runs_) add_run(out, run);
  const std::vector<Efficiency> list = efficiencies();
  if (!list.empty()) out += "\nefficiency\n";
  for (const Efficiency& e : list) {
    add(out, "  %-6s %2d devices, batch %8lld: %.3f",
        e.scaling == Efficiency::Scaling::strong ? "strong" : "weak", e.devices,
        static_cast<long long>(e.batch), e.value);
    if (e.ceiling) add(out, "  (ceiling %.3f)", *e.ceiling);
    out += e.simulated ? "  simulated\n" : "\n";
  }
  const std::vector<Prediction> predicted = predictions();
  if (!predicted.empty()) add_model(out, *this, predicted);
  return out;
}

}  // namespace braid::parallel
