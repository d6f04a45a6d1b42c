#include "split/results.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace bench::split {
namespace {

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
std::string text(const char* format, ...) {
  char line[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}

double samples_per_s(std::int64_t rows, double us) {
  return us > 0 ? static_cast<double>(rows) / us * 1e6 : 0;
}

/// Returns the uncertainty of a ratio of two times with this noise: 0 on a quiet machine, twice the
/// noise on a noisy one.
double uncertainty(double bar, double noise) {
  constexpr double kNoisy = 0.1;
  return noise > kNoisy ? 2 * noise * bar : 0;
}

/// Formats ` (bar 0.88 met)`, and counts the verdict.
std::string beside_bar(Table& table, const char* what, const std::string& bar, Verdict verdict,
                       bool must = true) {
  if (must && verdict != Verdict::none)
    ++(verdict == Verdict::met      ? table.met
       : verdict == Verdict::missed ? table.missed
                                    : table.noisy);
  return verdict == Verdict::none
             ? ""
             : " (" + std::string(what) + " " + bar + " " + name_of(verdict) + ")";
}

/// The name of a verdict in the JSON rows.
const char* field_of(Verdict verdict) {
  constexpr const char* kWords[] = {"unjudged", "met", "missed", "noisy"};
  return kWords[static_cast<std::size_t>(verdict)];
}

const Predicted* prediction_of(const std::vector<std::pair<Config, Predicted>>& list,
                               const Config& config) {
  for (const auto& [key, predicted] : list)
    if (key == config || (key.devices == 1 && config.devices == 1 && key.rows == config.rows))
      return predicted.samples_per_s > 0 ? &predicted : nullptr;
  return nullptr;
}

void set_or_null(Json& row, const char* key, double value) {
  if (value > 0) row.set(key, value);
  else row.set(key, nullptr);
}

/// One row of the table: a mode and a number of devices.
class RowOf {
 public:
  RowOf(const Net& net, const Setup& setup, Table& table, const Measured& measured, bool strong,
        const Config& config)
      : net_(net),
        setup_(setup),
        table_(table),
        measured_(measured),
        strong_(strong),
        config_(config),
        judged_(!setup.shares_cores(config.devices)) {
    time_ = measured.run(config);
    base_ = measured.run({1, strong ? net.strong : net.weak});
    noise_ = std::max(time_.noise, base_.noise);
    line_ = text("  %d device%s %-6s %5lld %s%s: %8.2f ms (+-%.0f %%), %.0f samples/s",
                 config.devices, config.devices == 1 ? "" : "s", strong ? "strong" : "weak",
                 static_cast<long long>(config.rows), net.rows_are.c_str(),
                 config.devices == 1 ? "" : text(", update %s", name_of(config.update)).c_str(),
                 time_.us / 1e3, 100 * time_.noise, samples_per_s(config.rows, time_.us));
    row_.set("name", net.name)
        .set("mode", strong ? "strong" : "weak")
        .set("devices", config.devices)
        .set("update", name_of(config.update));
    row_.set("rows", static_cast<double>(config.rows))
        .set("ours_us", time_.us)
        .set("samples_per_s", samples_per_s(config.rows, time_.us));
  }

  void efficiency() {
    const double value = of(time_.us),
                 ceiling = config_.devices == 1
                               ? 1
                               : of(measured_
                                        .apart(config_.devices,
                                               rows_of_device(config_.rows, config_.devices))
                                        .us);
    row_.set("efficiency", value);
    set_or_null(row_, "ceiling", ceiling);
    if (config_.devices == 1) return;
    line_ += text("\n    efficiency %.3f", value);
    if (net_.judged) {
      const double bar = strong_ ? Bars::kStrong : Bars::kWeak;
      line_ += verdict(efficiency_, text("%.2f", bar), value, bar, noise_);
    }
    if (!(ceiling > 0)) return;
    line_ += text(", ceiling %.3f", ceiling);
    if (net_.judged && judged_)  // the remaining potential, not a bar
      line_ +=
          beside_bar(table_, "stretch", text("%.3f", Bars::kOfCeiling * ceiling),
                     judge(value, Bars::kOfCeiling * ceiling, uncertainty(ceiling, noise_)), false);
  }

  void peers() {
    const bool have = setup_.peer != nullptr && judged_;
    const Time threads =
        have ? measured_.peer(torch_row(net_, config_.rows, config_.devices)) : Time{};
    const Time ddp = have && config_.devices == kDdpProcesses
                         ? measured_.peer(ddp_row(net_, config_.rows))
                         : Time{};
    const Time alone =
        have ? measured_.peer(torch_row(net_, strong_ ? net_.strong : net_.weak, 1)) : Time{};
    if (setup_.peer != nullptr) row_.set("peer", setup_.peer->name());
    else row_.set("peer", nullptr);
    set_or_null(row_, "threads_samples_per_s", samples_per_s(config_.rows, threads.us));
    set_or_null(row_, "threads_ratio", threads.us / time_.us);
    set_or_null(row_, "ddp_samples_per_s", samples_per_s(config_.rows, ddp.us));
    set_or_null(row_, "ddp_ratio", ddp.us / time_.us);
    set_or_null(row_, "peer_efficiency",
                ddp.us > 0 && alone.us > 0 ? efficiency_of(alone.us, ddp.us) : 0);
    const auto add = [&](Verdict& kept, const char* what, const Time& theirs, double bar) {
      if (!(theirs.us > 0)) {
        if (setup_.no_peers) return;
        ++table_.unjudged;
        if (judged_) line_ += text("\n    bar %.1f x of %s not judged: no time", bar, what);
        return;
      }
      noise_ = std::max(noise_, theirs.noise);
      const double ratio = theirs.us / time_.us;
      line_ += text("\n    %.2f x the %.0f samples/s of %s", ratio,
                    samples_per_s(config_.rows, theirs.us), what);
      line_ += verdict(kept, text("%.1f x", bar), ratio, bar, std::max(time_.noise, theirs.noise));
    };
    if (config_.devices == kDdpProcesses) add(ddp_, "DDP gloo", ddp, Bars::kDdp);
    add(threads_,
        text("PyTorch with %d intra-op thread%s", config_.devices, config_.devices == 1 ? "" : "s")
            .c_str(),
        threads, Bars::kThreads);
  }

  void prediction(const Predicted* predicted) {
    if (predicted == nullptr || !(time_.us > 0)) {
      row_.set("predicted", nullptr).set("predicted_by", nullptr).set("prediction_error", nullptr);
      return;
    }
    const double error = predicted->samples_per_s / samples_per_s(config_.rows, time_.us) - 1;
    row_.set("predicted", predicted->samples_per_s)
        .set("predicted_by", predicted->apart ? "the other runs" : "all runs")
        .set("prediction_error", error);
    line_ += text("\n    predicted %.0f samples/s by %s: %+.1f %%", predicted->samples_per_s,
                  predicted->apart ? "the other runs" : "all runs, this one too", 100 * error);
    if (!predicted->apart) return;  // not judged: the model was fitted to this run
    if (!judged_) {
      ++table_.unjudged;
      return;
    }
    // noise_ also includes the peer's noise
    prediction_ = judge(std::abs(error), Bars::kPrediction,
                        uncertainty(1, std::max(time_.noise, base_.noise)), Bound::most);
    line_ += beside_bar(table_, "bar", text("%.0f %%", 100 * Bars::kPrediction), prediction_);
  }

  void finish() {
    if (!judged_) line_ += "\n    more devices than cores: they share them, nothing is judged";
    std::printf("%s\n", line_.c_str());
    table_.noise = std::max(table_.noise, noise_);
    row_.set("verdict_efficiency", field_of(efficiency_))
        .set("verdict_ddp", field_of(ddp_))
        .set("verdict_threads", field_of(threads_));
    row_.set("verdict_prediction", field_of(prediction_));
    table_.rows.push_back(
        row_.set("noise", noise_).set("shares_cores", !judged_).set("simulated", true));
  }

 private:
  [[nodiscard]] double efficiency_of(double one_us, double us) const {
    if (!(us > 0)) return 0;
    return strong_ ? one_us / (config_.devices * us) : one_us / us;
  }
  [[nodiscard]] double of(double us) const { return efficiency_of(base_.us, us); }
  [[nodiscard]] std::string verdict(Verdict& kept, const std::string& bar_text, double value,
                                    double bar, double noise) {
    if (!judged_) {
      ++table_.unjudged;
      return "";
    }
    kept = judge(value, bar, uncertainty(bar, noise));
    return beside_bar(table_, "bar", bar_text, kept);
  }

  const Net& net_;
  const Setup& setup_;
  Table& table_;
  const Measured& measured_;
  bool strong_;
  Config config_;
  bool judged_;
  Time time_, base_;
  double noise_ = 0;
  Verdict efficiency_ = Verdict::none, ddp_ = Verdict::none, threads_ = Verdict::none,
          prediction_ = Verdict::none;
  std::string line_;
  Json row_;
};

}  // namespace

Verdict judge(double value, double bar, double uncertainty, Bound bound) {
  if (std::abs(value - bar) < uncertainty) return Verdict::noisy;
  return (bound == Bound::least ? value >= bar : value <= bar) ? Verdict::met : Verdict::missed;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::met: return "met";
    case Verdict::missed: return "MISSED";
    case Verdict::noisy: return "TOO NOISY";
    case Verdict::none: break;
  }
  return "";
}

void add_rows(const Net& net, const Setup& setup, Update update, const Measured& measured,
              const std::vector<std::pair<Config, Predicted>>& predictions, Table& table) {
  // one device has one row for both kinds of update
  const bool first = update == setup.updates.front();
  for (const bool strong : {true, false})
    for (int n = first ? 1 : 2; n <= setup.devices; ++n) {
      const Config config{n, strong ? net.strong : n * net.weak, update};
      RowOf row(net, setup, table, measured, strong, config);
      row.efficiency();
      row.peers();
      row.prediction(prediction_of(predictions, config));
      row.finish();
    }
}

void add_overhead(const Net& net, const Setup& setup, Update update, const Overhead& overhead,
                  Table& table) {
  const bool judged = !setup.shares_cores(setup.devices);
  const Verdict verdict =
      judged ? judge(overhead.value, Bars::kOverhead, 2 * overhead.uncertainty, Bound::most)
             : Verdict::none;
  std::printf(
      "  the recorder of the report makes a step over %d devices, update %s, %.2f %% longer "
      "(+-%.2f %%)%s\n",
      setup.devices, name_of(update), 100 * overhead.value, 100 * overhead.uncertainty,
      beside_bar(table, "bar", text("%.0f %%", 100 * Bars::kOverhead), verdict).c_str());
  std::printf(
      "  while nothing is recorded: computed %.4f %% of a step, %.1f spans at the %.2f ns of a "
      "plain one\n",
      100 * overhead.disabled, overhead.spans, overhead.disabled_ns);
  if (!judged) ++table.unjudged;
  Json row;
  row.set("trace_disabled", overhead.disabled)
      .set("disabled_span_ns", overhead.disabled_ns)
      .set("spans", overhead.spans);
  row.set("name", net.name)
      .set("mode", "trace")
      .set("devices", setup.devices)
      .set("update", name_of(update))
      .set("rows", static_cast<double>(net.strong));
  row.set("trace_overhead", overhead.value)
      .set("uncertainty", overhead.uncertainty)
      .set("verdict_overhead", field_of(verdict));
  table.rows.push_back(row.set("peer", nullptr).set("simulated", true));
}

}  // namespace bench::split
