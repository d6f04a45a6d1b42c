#include "split/measure.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include <braid/core/worker.hpp>

#include "support/reference.hpp"

namespace bench::split {
namespace {

constexpr int kCheckedSteps = 2;

double time(Training& training, int steps) {
  training.reset();
  return time_step(steps, [&] { (void)training.step(); });
}

/// Trains independent models at the same time, each on its own device and thread. Returns the mean
/// of their step times, or 0 if one fails.
double time_independent(const std::vector<std::unique_ptr<Training>>& runs, int steps) {
  const std::vector<braid::Device> devices = first_devices(static_cast<int>(runs.size()));
  std::vector<double> us(runs.size(), 0.0);
  std::atomic<std::size_t> ready = 0;
  braid::run_on_devices(devices, [&](std::size_t i) {
    ready.fetch_add(1);
    while (ready.load() < runs.size()) std::this_thread::yield();
    try {
      us[i] = time(*runs[i], steps);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "independent run %zu: %s\n", i, error.what());
    }
  });
  double sum = 0;
  for (const double t : us) {
    if (!(t > 0)) return 0;
    sum += t;
  }
  return sum / static_cast<double>(us.size());
}

// The losses of the first steps depend little on the gradients, so the changes of the parameters
// are compared too. A float32 parameter rounds steps as small as the word model's to 0.3 %.
constexpr double kMostOff = 0.02;
double distance(const std::vector<braid::Tensor>& a, const std::vector<braid::Tensor>& b) {
  const braid::NoGrad guard;
  double squares = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    squares += braid::square(a[k] - b[k]).sum().item<double>();
  return std::sqrt(squares);
}
std::vector<braid::Tensor> copies(const std::vector<braid::Tensor>& parameters) {
  const braid::NoGrad guard;
  std::vector<braid::Tensor> list;
  for (const braid::Tensor& p : parameters) list.push_back(p.clone());
  return list;
}

template <class Key> void add_once(std::vector<Key>& list, Key key) {
  if (std::find(list.begin(), list.end(), key) == list.end()) list.push_back(std::move(key));
}

template <class Key> Time find(const std::vector<Timed<Key>>& list, const Key& key) {
  for (const Timed<Key>& timed : list)
    if (timed.key == key) return {timed.series.time(), timed.series.noise()};
  return {};
}

std::vector<Config> independent_runs(const Net& net, const Setup& setup) {
  std::vector<Config> list;
  for (int n = 2; n <= setup.devices; ++n) {
    add_once(list, Config{n, rows_of_device(net.strong, n)});
    add_once(list, Config{n, net.weak});
  }
  return list;
}

std::vector<PeerRow> peer_rows(const Net& net, const Setup& setup) {
  std::vector<PeerRow> list;
  if (setup.peer == nullptr) return list;
  for (int n = 1; n <= setup.devices && !setup.shares_cores(n); ++n)
    for (const std::int64_t batch : {net.strong, n * net.weak}) {
      add_once(list, torch_row(net, batch, n));
      if (n == kDdpProcesses) add_once(list, ddp_row(net, batch));
    }
  return list;
}

std::string batch_name(const Net& net, std::int64_t rows) {
  return net.peer + "_b" + std::to_string(rows);
}

}  // namespace

std::vector<braid::Device> first_devices(int n) {
  std::vector<braid::Device> list = braid::devices();
  list.resize(static_cast<std::size_t>(n));
  return list;
}

Time Measured::run(const Config& config) const {
  return find(runs, config.devices == 1 ? Config{1, config.rows} : config);
}
Time Measured::apart(int devices, std::int64_t rows) const {
  return find(independent, Config{devices, rows});
}
Time Measured::peer(const PeerRow& row) const { return find(peers, row); }

PeerRow torch_row(const Net& net, std::int64_t batch, int threads) {
  return {batch_name(net, batch) + "_sgd", threads};
}
PeerRow ddp_row(const Net& net, std::int64_t batch) {
  return {batch_name(net, batch / kDdpProcesses) + "_ddp", 1};
}

std::vector<Config> configurations(const Net& net, const Setup& setup) {
  std::vector<Config> list = {{1, net.weak}};
  add_once(list, Config{1, net.strong});
  for (const Update update : setup.updates) {
    std::vector<Config> several;
    for (int n = 2; n <= setup.devices; ++n) {
      add_once(several, Config{n, net.strong, update});
      add_once(several, Config{n, n * net.weak, update});
    }
    // inserted first, because the report's page opens with the last run
    if (several.size() == 1)
      several.insert(several.begin(), {several.front().devices, several.front().rows / 2, update});
    list.insert(list.end(), several.begin(), several.end());
  }
  return list;
}

Measured measure(const Net& net, const Setup& setup) {
  Measured measured;
  std::vector<std::unique_ptr<Training>> trainings;
  std::vector<std::vector<std::unique_ptr<Training>>> groups;
  std::vector<std::function<double()>> contenders;
  for (const Config& config : configurations(net, setup)) {
    measured.runs.push_back({config, {}});
    trainings.push_back(net.make(first_devices(config.devices), config.rows, config.update));
    contenders.push_back(
        [&net, training = trainings.back().get()] { return time(*training, net.steps); });
  }
  for (const Config& config : independent_runs(net, setup)) {
    measured.independent.push_back({config, {}});
    std::vector<std::unique_ptr<Training>> group;
    for (const braid::Device device : first_devices(config.devices))
      group.push_back(net.make({device}, config.rows, Update::broadcast));
    groups.push_back(std::move(group));
  }
  for (const auto& group : groups)
    contenders.push_back([&net, &group] { return time_independent(group, net.steps); });
  for (const PeerRow& row : peer_rows(net, setup)) {
    measured.peers.push_back({row, {}});
    contenders.push_back([&net, &setup, row] {
      return setup.peer->run(row.name, row.threads, net.steps).value_or(0);
    });
  }
  const std::vector<Series> series = interleave(setup.rounds, contenders);
  std::size_t next = 0;
  for (auto& timed : measured.runs) timed.series = series[next++];
  for (auto& timed : measured.independent) timed.series = series[next++];
  for (auto& timed : measured.peers) {
    timed.series = series[next++];
    if (timed.series.failed)
      std::fprintf(stderr, "%s, %d threads: %s\n", timed.key.name.c_str(), timed.key.threads,
                   setup.peer->error().c_str());
  }
  return measured;
}

Agreement agree(const Net& net, const Setup& setup) {
  Agreement result;
  const auto check = [&](const std::string& what, const std::vector<double>& got,
                         const std::vector<double>& want) {
    const std::string difference = compare_losses(got, want);
    if (difference.empty()) return;
    std::fprintf(stderr, "%s: %s: %s\n", net.name.c_str(), what.c_str(), difference.c_str());
    result.good = false;
  };
  const auto ours = [&](int n, std::int64_t rows, Update update) {
    return net.make(first_devices(n), rows, update)->losses(kCheckedSteps);
  };
  // a small batch, because the reference is slow
  const std::vector<double> want = net.reference(net.checked, kCheckedSteps);
  const auto one = net.make(first_devices(1), net.checked, Update::broadcast);
  const std::vector<braid::Tensor> start = copies(one->parameters());
  check("one device", one->losses(kCheckedSteps), want);
  for (const Update update : setup.updates)
    for (int n = 2; n <= setup.devices; ++n) {
      const std::string what = std::to_string(n) + " devices, update " + name_of(update);
      const auto several = net.make(first_devices(n), net.checked, update);
      check(what, several->losses(kCheckedSteps), want);
      const double off =
          distance(several->parameters(), one->parameters()) / distance(one->parameters(), start);
      if (off <= kMostOff) continue;
      std::fprintf(stderr,
                   "%s: %s: the parameters have moved by other steps than on one device: %.2g of "
                   "their length apart\n",
                   net.name.c_str(), what.c_str(), off);
      result.good = false;
    }
  // Compares the peers, at the batch sizes that are timed, with one device and with several.
  std::int64_t batch = 0;
  std::vector<double> of_batch;
  for (int n = 1; n <= setup.devices && setup.peer != nullptr && !setup.shares_cores(n); ++n)
    for (const std::int64_t rows : {net.strong, n * net.weak}) {
      if (rows != batch) of_batch = ours(1, batch = rows, Update::broadcast);
      if (n > 1)
        for (const Update update : setup.updates)
          check(std::to_string(n) + " devices at " + std::to_string(rows) + " " + net.rows_are,
                ours(n, rows, update), of_batch);
      std::vector<PeerRow> rows_of_peers = {torch_row(net, rows, n)};
      if (n == kDdpProcesses) rows_of_peers.push_back(ddp_row(net, rows));
      for (const PeerRow& row : rows_of_peers) {
        const std::vector<double> theirs = setup.peer->losses(row.name, row.threads, kCheckedSteps);
        ++(theirs.empty() ? result.silent : result.peers);
        if (theirs.empty())
          std::fprintf(stderr, "%s: %s\n", row.name.c_str(), setup.peer->error().c_str());
        else check(row.name + " of " + setup.peer->name() + " beside Braid", theirs, of_batch);
      }
    }
  return result;
}

namespace {

/// Returns the time in ns of a plain Span while nothing is recorded.
double disabled_span_ns() {
  constexpr int kSpans = 1'000'000;
  const braid::Device device = braid::devices().front();
  return 1e3 / kSpans * time_step(1, [&] {
           for (int i = 0; i < kSpans; ++i)
             const braid::trace::Span span("nothing", braid::trace::Phase::compute, device);
         });
}

}  // namespace

Overhead recorder_overhead(const Net& net, const Setup& setup, Update update) {
  constexpr int kPairsOfRound = 6;
  const std::vector<braid::Device> devices = first_devices(setup.devices);
  const std::int64_t rows = net.strong;
  const auto training = net.make(devices, rows, update);
  const int steps = std::max(3, net.steps / 2);  // in a block
  const auto plain = [&] { return time_step(steps, [&] { (void)training->step(); }); };
  double spans = 0;
  const auto recorded = [&] {
    braid::parallel::DataParallelReport report;
    auto recording = report.record(devices, rows);
    const double us = time_step(steps, [&] {
      const auto step = recording.step();
      (void)training->step();
    });
    recording.finish();
    const braid::parallel::MeasuredRun& run = report.runs().front();
    spans = static_cast<double>(run.spans.size()) /
            static_cast<double>(std::max<std::int64_t>(1, run.steps));
    return us;
  };
  std::vector<double> ratios, times;
  (void)plain();
  for (int i = 0; i < setup.rounds * kPairsOfRound; ++i) {
    double on = 0, off = 0;
    if (i % 2 == 0) off = plain(), on = recorded();
    else on = recorded(), off = plain();
    ratios.push_back(on / off - 1);
    times.push_back(off);
  }
  Overhead overhead{.value = median(ratios), .disabled_ns = disabled_span_ns(), .spans = spans};
  overhead.disabled = overhead.disabled_ns * 1e-3 * overhead.spans / median(times);
  std::vector<double> away;
  for (const double r : ratios) away.push_back(std::abs(r - overhead.value));
  // For a normal distribution: standard deviation / median absolute deviation, and standard error
  // of the median / standard error of the mean.
  constexpr double kSigma = 1.4826, kMedian = 1.2533;
  overhead.uncertainty =
      kSigma * kMedian * median(away) / std::sqrt(static_cast<double>(ratios.size()));
  return overhead;
}

}  // namespace bench::split
