// Results computed from the runs: efficiency, the cost model, predictions.
#include <braid/parallel/report.hpp>

#include <algorithm>
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/io/file.hpp>

#include "report/phases.hpp"

namespace braid::parallel {

DataParallelReport::DataParallelReport(std::string title, Collective collective)
    : title_(std::move(title)), collective_(collective) {}

DataParallelReport::Recording DataParallelReport::record(const DeviceList& devices,
                                                         std::int64_t batch) {
  return Recording(*this, devices.list(), batch);
}

void DataParallelReport::add_independent(int devices, std::int64_t rows, double seconds) {
  if (devices < 2 || rows < 1 || !(seconds > 0) || !std::isfinite(seconds))
    throw ArgumentError(
        str("add_independent: expected at least 2 devices, 1 row and a positive time, got ",
            devices, ", ", rows, " and ", seconds, " s"));
  independent_.push_back({devices, rows, seconds});
}

const MeasuredRun* DataParallelReport::single(std::int64_t batch,
                                              const MeasuredRun* without) const {
  for (const MeasuredRun& run : runs_)
    if (&run != without && run.devices.size() == 1 && run.batch == batch && run.seconds > 0)
      return &run;
  return nullptr;
}

double DataParallelReport::independent_seconds(int devices, std::int64_t rows) const {
  for (const Independent& i : independent_)
    if (i.devices == devices && i.rows == rows) return i.seconds;
  return 0;
}

std::vector<Efficiency> DataParallelReport::efficiencies() const {
  std::vector<Efficiency> list;
  for (const MeasuredRun& run : runs_) {
    const auto n = static_cast<std::int64_t>(run.devices.size());
    if (n < 2 || run.seconds <= 0) continue;
    const int devices = static_cast<int>(n);
    // For the largest chunk, because the step waits for it.
    const double apart = independent_seconds(devices, (run.batch + n - 1) / n);
    if (const MeasuredRun* const one = single(run.batch)) {
      Efficiency e{Efficiency::Scaling::strong,
                   devices,
                   run.batch,
                   one->seconds / (static_cast<double>(n) * run.seconds),
                   {},
                   run.simulated};
      if (apart > 0) e.ceiling = one->seconds / (static_cast<double>(n) * apart);
      list.push_back(e);
    }
    if (const MeasuredRun* const one = run.batch % n == 0 ? single(run.batch / n) : nullptr) {
      Efficiency e{Efficiency::Scaling::weak,  devices, run.batch,
                   one->seconds / run.seconds, {},      run.simulated};
      if (apart > 0) e.ceiling = one->seconds / apart;
      list.push_back(e);
    }
  }
  return list;
}

double DataParallelReport::slowdown(const MeasuredRun& run) const { return slowdown(run, nullptr); }

double DataParallelReport::slowdown(const MeasuredRun& run, const MeasuredRun* without) const {
  const auto n = static_cast<std::int64_t>(run.devices.size());
  if (n < 2) return 1;
  const double rows = static_cast<double>(run.batch) / static_cast<double>(n);
  std::optional<double> nearest;
  double distance = 0;
  for (const Independent& i : independent_) {
    const MeasuredRun* const one = i.devices == n ? single(i.rows, without) : nullptr;
    if (one == nullptr) continue;
    const double away = std::abs(std::log(static_cast<double>(i.rows) / rows));
    if (!nearest || away < distance) nearest = i.seconds / one->seconds, distance = away;
  }
  return std::max(1.0, nearest.value_or(run.slowdown));
}

std::vector<CostSample> DataParallelReport::samples(const MeasuredRun* without) const {
  std::vector<CostSample> list;
  for (const MeasuredRun& run : runs_) {
    if (&run == without || run.steps == 0) continue;
    CostSample s{.devices = static_cast<int>(run.devices.size()),
                 .batch = run.batch,
                 .seconds = run.critical,
                 .slowdown = slowdown(run, without)};
    // The recorded phases give the parts of a step, and T(n) its length. T(n) may have been
    // measured without the recorder.
    if (const double total = run.critical.total(); total > 0 && run.seconds > 0)
      s.seconds *= run.seconds / total;
    // The first step is left out, because it may have moved more bytes.
    std::vector<double> scatter(static_cast<std::size_t>(run.steps)),
        replicate = scatter, gather = scatter, reduce = scatter;
    for (std::size_t i = 0; i < run.replicas.size(); ++i) {
      const ReplicaStep& r = run.replicas[i];
      const std::size_t step = i / run.devices.size();
      scatter[step] += static_cast<double>(r.scatter_bytes);
      replicate[step] += static_cast<double>(r.replicate_bytes);
      gather[step] += static_cast<double>(r.gather_bytes);
      reduce[step] += static_cast<double>(r.reduce_bytes);
    }
    const auto usual = [](const std::vector<double>& steps) {
      return median({steps.begin() + (steps.size() > 1 ? 1 : 0), steps.end()});
    };
    s.scatter_bytes = usual(scatter);
    s.replicate_bytes = usual(replicate);
    s.gather_bytes = usual(gather);
    s.reduce_bytes = usual(reduce);
    list.push_back(s);
  }
  return list;
}

CostModel DataParallelReport::cost_model() const { return CostModel::fit(samples(), collective_); }

std::vector<Prediction> DataParallelReport::predictions() const {
  std::vector<Prediction> list;
  const std::vector<CostSample> all = samples();
  if (all.empty()) return list;
  const CostModel model = CostModel::fit(all, collective_);
  for (const MeasuredRun& run : runs_) {
    if (run.steps == 0) continue;
    const int n = static_cast<int>(run.devices.size());
    const auto rows = static_cast<double>(run.batch);
    const double slower = slowdown(run);
    Prediction p{.devices = n,
                 .batch = run.batch,
                 .measured = run.seconds > 0 ? rows / run.seconds : 0,
                 .terms = model.predict(n, run.batch, slower),
                 .simulated = run.simulated};
    if (p.terms.total() > 0) p.predicted = rows / p.terms.total();
    if (n > 1) p.break_even = model.break_even(n, slower);
    // A prediction from the other runs needs at least two of them, and for several devices one run
    // of several devices.
    const std::vector<CostSample> others = samples(&run);
    if (others.size() >= 2) {
      const CostModel apart = CostModel::fit(others, collective_);
      if (n == 1 || apart.knows_several()) {
        const double total = apart.predict(n, run.batch, slower).total();
        if (total > 0) p.predicted_apart = rows / total;
      }
    }
    list.push_back(p);
  }
  return list;
}

void DataParallelReport::write(const std::string& stem) const {
  const auto save = [](const std::string& path, const std::string& content) {
    io::OutputFile file(path);
    file.write(content.data(), content.size());
    file.commit();
  };
  save(stem + ".txt", text());
  save(stem + ".json", json());
  save(stem + ".trace.json", chrome_trace());
  save(stem + ".html", html());
}

}  // namespace braid::parallel
