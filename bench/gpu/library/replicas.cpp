#include "library/replicas.hpp"

#include <atomic>
#include <functional>
#include <sstream>
#include <thread>

#include <braid/core/internal/worker.hpp>
#include <braid/parallel/internal/thread_ranks.hpp>

#include "support/rows.hpp"
#include "support/timing.hpp"

namespace bench::gpu {
namespace {

using braid::Device;
using braid::Tensor;
namespace parallel = braid::parallel;

constexpr std::int64_t kClasses = 10;

auto net(std::int64_t width) {
  using namespace braid::nn;
  return Sequential{Linear(width, width), ReLU(), Linear(width, width), ReLU(),
                    Linear(width, kClasses)};
}
using Net = decltype(net(0));
template <class Model> using Training = Row<Model, decltype(kCrossEntropy)>;

/// The operands are a batch [rows, width] and its labels. The result of a run is the loss. `wrap`
/// gets the network, which is on the device.
template <class Wrap> Work step_of(const Sets& sets, Wrap wrap) {
  const Tensor& x = sets[0][0];
  Net model = net(x.size(1));
  braid::to(model, device());
  auto wrapped = wrap(std::move(model));
  auto row = std::make_shared<Training<decltype(wrapped)>>(std::move(wrapped), x, sets[0][1],
                                                           kCrossEntropy);
  Work work;
  work.once = [row](std::size_t) { return row->step().detach(); };
  return work;
}

const Entry kReplicas[] = {
    {"plain_step", 2,
     [](const Sets& s) { return step_of(s, [](Net&& model) { return std::move(model); }); }},
    {"data_parallel_step", 2,
     [](const Sets& s) {
       return step_of(s, [](Net&& model) {
         return parallel::DataParallel(std::move(model), std::vector<Device>{device()});
       });
     }},
    {"distributed_step", 2,
     [](const Sets& s) {
       return step_of(s, [](Net&& model) {
         auto ranks = parallel::detail::make_thread_communicators({device()});
         return parallel::DistributedDataParallel(std::move(model), ranks.at(0));
       });
     }},
};

/// A network over some devices, with its batch.
struct Config {
  int devices = 1;
  std::int64_t rows = 0;
};

std::vector<Device> first_devices(int n) {
  std::vector<Device> list = braid::devices(braid::DeviceType::cuda);
  if (static_cast<int>(list.size()) < n)
    throw braid::DeviceError(
        braid::str("predicted_steps: expected ", n, " devices, got ", list.size()));
  list.resize(static_cast<std::size_t>(n));
  return list;
}

class Split {
 public:
  Split(std::vector<Device> devices, std::int64_t rows, std::int64_t width)
      : devices_(std::move(devices)),
        row_(wrapped(devices_, width), batch(devices_, rows, width),
             classes(rows, kClasses).to(devices_[0]), kCrossEntropy) {}
  void step() { (void)row_.step(); }
  /// Returns the mean time of a step in us, with the wait for the last one.
  double time(int steps) {
    step();
    wait();
    return time_step(1,
                     [&] {
                       for (int i = 0; i < steps; ++i) step();
                       wait();
                     }) /
           steps;
  }

 private:
  static parallel::DataParallel<Net> wrapped(const std::vector<Device>& devices,
                                             std::int64_t width) {
    Net model = net(width);
    braid::to(model, devices[0]);
    return parallel::DataParallel(std::move(model), devices);
  }
  static Tensor batch(const std::vector<Device>& devices, std::int64_t rows, std::int64_t width) {
    return input(rows, width).to(devices[0]);
  }
  void wait() const {
    for (const Device device : devices_) braid::synchronize(device);
  }

  std::vector<Device> devices_;
  Training<parallel::DataParallel<Net>> row_;
};

/// Steps of independent networks at the same time, one on each device. Returns the mean of their
/// times in us; 0 if one failed, whose message is then in last_error().
double time_apart(std::vector<std::unique_ptr<Split>>& runs, int steps) {
  const std::vector<Device> devices = first_devices(static_cast<int>(runs.size()));
  std::vector<double> us(runs.size(), 0.0);
  std::vector<std::string> errors(runs.size());  // one for each thread
  std::atomic<std::size_t> ready = 0;
  braid::run_on_devices(devices, [&](std::size_t i) {
    ready.fetch_add(1);
    while (ready.load() < runs.size()) std::this_thread::yield();
    try {
      us[i] = runs[i]->time(steps);
    } catch (const std::exception& error) {
      errors[i] = error.what();
    }
  });
  double sum = 0;
  for (std::size_t i = 0; i < us.size(); ++i) {
    if (!(us[i] > 0)) {
      last_error() = errors[i];
      return 0;
    }
    sum += us[i];
  }
  return sum / static_cast<double>(us.size());
}

}  // namespace

std::span<const Entry> replica_entries() { return kReplicas; }

std::string predicted_steps(int devices, std::int64_t width, std::int64_t rows, int rounds,
                            int steps) {
  // Strong and weak splits. One device has both sizes, so that compute is a line.
  const std::int64_t few = rows / devices;
  std::vector<Config> configs = {{1, few}, {1, rows}};
  for (int n = 2; n <= devices; ++n) {
    configs.push_back({n, rows});
    if (n < devices) configs.push_back({n, n * few});
  }
  std::vector<std::unique_ptr<Split>> splits;
  std::vector<std::vector<std::unique_ptr<Split>>> apart;
  std::vector<std::function<double()>> contenders;
  for (const Config& c : configs) {
    splits.push_back(std::make_unique<Split>(first_devices(c.devices), c.rows, width));
    contenders.emplace_back([steps, split = splits.back().get()] { return split->time(steps); });
  }
  for (int n = 2; n <= devices; ++n) {
    apart.emplace_back();
    for (const Device device : first_devices(n))
      apart.back().push_back(std::make_unique<Split>(std::vector<Device>{device}, few, width));
  }
  for (auto& runs : apart)
    contenders.emplace_back([steps, &runs] { return time_apart(runs, steps); });
  const std::vector<Series> series = interleave(rounds, contenders);

  constexpr int kRecorded = 8;
  parallel::DataParallelReport report("predicted_steps");
  for (std::size_t i = 0; i < configs.size(); ++i) {
    auto recording = report.record(first_devices(configs[i].devices), configs[i].rows);
    recording.set_seconds(series[i].time() * 1e-6);
    for (int s = 0; s < kRecorded; ++s) {
      const auto step = recording.step();
      splits[i]->step();
    }
    recording.finish();
  }
  for (int n = 2; n <= devices; ++n) {
    const double us = series[configs.size() + static_cast<std::size_t>(n) - 2].time();
    if (!(us > 0)) throw braid::Error("predicted_steps: independent steps: " + last_error());
    report.add_independent(n, few, us * 1e-6);
  }
  const std::vector<parallel::Prediction> predictions = report.predictions();
  std::ostringstream text;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const double rate = predictions.at(i).predicted_apart.value_or(0);
    text << (i == 0 ? "[" : ", ") << "{\"devices\": " << configs[i].devices
         << ", \"rows\": " << configs[i].rows << ", \"us\": " << series[i].time()
         << ", \"noise\": " << series[i].noise() << ", \"predicted_us\": "
         << (rate > 0 ? static_cast<double>(configs[i].rows) / rate * 1e6 : 0) << "}";
  }
  return text.str() + "]";
}

}  // namespace bench::gpu
