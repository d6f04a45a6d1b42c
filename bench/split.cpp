// bench_split: a batch split over two logical CPU devices, one thread each, beside one device and beside PyTorch's DDP (gloo, two processes).
//   weak    256 rows a device:  efficiency = T(1 device, 256) / T(2 devices, 512)
//   strong  512 rows in all:    efficiency = T(1 device, 512) / (2 T(2 devices, 512))
// The ceiling is what two independent runs, one a device at the same time, lose to each other.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/worker.hpp>

#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/peer.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/timing.hpp"

namespace {

using braid::Device;

constexpr std::int64_t kHidden = 2048, kRows = 256;  // rows a device
constexpr int kDevices = 2, kSteps = 10, kCheckedSteps = 2;
constexpr double kWeakBar = 0.85;
constexpr double kTooNoisy = 0.1;  // the two turns of a round lie further apart than this: no verdict

auto make_single(std::int64_t rows, Device device) {
  auto model = bench::make_mlp(kHidden);
  braid::to(model, device);
  return std::make_unique<bench::Row<decltype(model), decltype(bench::kCrossEntropy)>>(std::move(model), bench::input(rows, 784).to(device),
                                                                                       bench::classes(rows, 10).to(device), bench::kCrossEntropy);
}

auto make_parallel(std::int64_t rows) {
  braid::parallel::DataParallel model(bench::make_mlp(kHidden), braid::devices());
  return std::make_unique<bench::Row<decltype(model), decltype(bench::kCrossEntropy)>>(std::move(model), bench::input(rows, 784), bench::classes(rows, 10),
                                                                                       bench::kCrossEntropy);
}

// One device and two must give the losses of the plain reference; the small batch keeps its loops short.
bool correct() {
  constexpr std::int64_t rows = 16;
  const std::vector<double> want = bench::reference_losses({784, kHidden, kHidden, 10}, rows, false, kCheckedSteps);
  bool good = true;
  const auto check = [&](const char* what, const std::vector<double>& got) {
    const std::string difference = bench::compare_losses(got, want);
    if (difference.empty()) return;
    std::fprintf(stderr, "%s disagrees with the reference: %s\n", what, difference.c_str());
    good = false;
  };
  check("one device", make_single(rows, Device("cpu:0"))->losses(kCheckedSteps));
  check("two devices", make_parallel(rows)->losses(kCheckedSteps));
  return good;
}

// Two models that know nothing of each other, each on its own device and thread, at the same time: the mean of their step times.
double time_independent(std::vector<std::function<double()>>& runs) {
  const std::vector<Device> devices = braid::devices();
  std::vector<double> us(runs.size(), 0.0);
  std::atomic<std::size_t> ready = 0;
  braid::run_on_devices(devices, [&](std::size_t i) {
    ready.fetch_add(1);
    while (ready.load() < runs.size()) std::this_thread::yield();
    try {
      us[i] = runs[i]();
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

struct Times {
  double one_weak, one_strong, two, independent;  // us a step
};

struct Efficiency {
  double weak, strong;
};
Efficiency efficiency(double one_weak, double one_strong, double two) { return {one_weak / two, one_strong / (kDevices * two)}; }

void add_rows(std::vector<bench::Json>& rows, const Times& t, const char* mode, double one_us, double one_rows, double value, double ceiling,
              const bench::Peer* peer, double peer_value) {
  for (const int devices : {1, kDevices}) {
    const bool single = devices == 1;
    const double global = single ? one_rows : static_cast<double>(kDevices * kRows);
    bench::Json row;
    row.set("name", "mlp2048").set("mode", mode).set("devices", devices).set("samples_per_s", global / (single ? one_us : t.two) * 1e6);
    row.set("efficiency", single ? 1.0 : value).set("ceiling", single ? 1.0 : ceiling);
    if (peer) row.set("peer", peer->name() + " DDP gloo").set("peer_efficiency", single ? 1.0 : peer_value);
    else row.set("peer", nullptr).set("peer_efficiency", nullptr);
    rows.push_back(row.set("simulated", true));
  }
}

int run(const bench::Options& options) {
  bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", bench::machine_line().c_str(), warning.c_str(), warning.empty() ? "" : "\n");
  if (bench::physical_cores() < kDevices) {
    std::fprintf(stderr, "bench_split: needs %d cores, this process may use %zu\n", kDevices, bench::physical_cores());
    return 1;
  }
  std::unique_ptr<bench::Peer> peer;  // before Braid makes threads or pins one: a child inherits its parent's mask
  if (!options.no_peers) {
    peer = std::make_unique<bench::Peer>("torch-python", options.peers + "/bin/peer-python", bench::core_list(kDevices));
    if (!peer->available()) std::printf("torch-python is missing: %s\n", peer->error().c_str());
  }

  if (!correct()) return 1;
  auto weak = make_single(kRows, Device("cpu:0"));
  auto strong = make_single(kDevices * kRows, Device("cpu:0"));
  auto both = make_parallel(kDevices * kRows);
  auto first = make_single(kRows, Device("cpu:0")), second = make_single(kRows, Device("cpu:1"));
  if (peer && peer->available()) {
    const std::vector<double> theirs = peer->losses("mlp2048_b256_ddp", 1, kCheckedSteps);
    const std::string what = theirs.empty() ? peer->error() : bench::compare_losses(both->losses(kCheckedSteps), theirs);
    if (!what.empty()) {
      std::fprintf(stderr, "the losses of DDP and of DataParallel: %s\n", what.c_str());
      if (!theirs.empty()) return 1;
    }
  }
  std::printf("the losses of one device and of two agree with the plain reference to 1e-4\n");
  if (options.check) return 0;

  const auto time = [](auto& row) {
    row->reset();
    return bench::time_step(kSteps, [&] { row->step(); });
  };
  std::vector<std::function<double()>> independent = {[&] { return time(first); }, [&] { return time(second); }};
  std::vector<std::function<double()>> contenders = {[&] { return time(weak); }, [&] { return time(strong); }, [&] { return time(both); },
                                                     [&] { return time_independent(independent); }};
  if (peer)
    for (const char* row : {"mlp2048_b256_sgd", "mlp2048_b512_sgd", "mlp2048_b256_ddp"})
      contenders.push_back([&peer, row] { return peer->run(row, 1, kSteps).value_or(0); });
  const std::vector<bench::Series> series = bench::interleave(options.rounds, contenders);

  const Times t = {series[0].time(), series[1].time(), series[2].time(), series[3].time()};
  const Efficiency ours = efficiency(t.one_weak, t.one_strong, t.two), ceiling = efficiency(t.one_weak, t.one_strong, t.independent);
  std::printf(
      "one device, 256 rows %.1f ms (+-%.0f %%), 512 rows %.1f ms; two devices, 512 rows %.1f ms (+-%.0f %%); two independent runs of 256 rows %.1f ms\n",
      t.one_weak / 1e3, 100 * series[0].noise(), t.one_strong / 1e3, t.two / 1e3, 100 * series[2].noise(), t.independent / 1e3);
  const double noise = std::max(series[0].noise(), series[2].noise());
  const bool have_peer = peer && series[4].time() > 0 && series[5].time() > 0 && series[6].time() > 0;
  Efficiency theirs{0, 0};
  if (have_peer) {
    theirs = efficiency(series[4].time(), series[5].time(), series[6].time());
    std::printf("%s: one process, 256 rows %.1f ms, 512 rows %.1f ms; DDP, 512 rows %.1f ms (+-%.0f %%)\n", peer->name().c_str(), series[4].time() / 1e3,
                series[5].time() / 1e3, series[6].time() / 1e3, 100 * series[6].noise());
  } else if (peer) {
    std::printf("no peer: %s\n", peer->error().c_str());
  }
  const auto line = [&](const char* mode, double value, double top, double other, double bar) {
    char theirs_text[32] = "none";
    if (have_peer) std::snprintf(theirs_text, sizeof theirs_text, "%.3f", other);
    std::printf("%-6s efficiency %.3f (simulated devices; ceiling %.3f; peer %s)", mode, value, top, theirs_text);
    if (bar > 0) std::printf("  bar %.2f %s", bar, noise > kTooNoisy ? "TOO NOISY" : value >= bar ? "met" : "MISSED");
    std::printf("\n");
  };
  line("weak", ours.weak, ceiling.weak, theirs.weak, kWeakBar);
  line("strong", ours.strong, ceiling.strong, theirs.strong, 0);

  std::vector<bench::Json> rows;
  add_rows(rows, t, "weak", t.one_weak, kRows, ours.weak, ceiling.weak, have_peer ? peer.get() : nullptr, theirs.weak);
  add_rows(rows, t, "strong", t.one_strong, kDevices * kRows, ours.strong, ceiling.strong, have_peer ? peer.get() : nullptr, theirs.strong);
  bench::write_json(options, machine.set("noise", noise), rows);
  return options.strict && (noise > kTooNoisy || ours.weak < kWeakBar) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(argc, argv,
                            {"bench_split",
                             "a batch split over two logical devices beside one device and beside DDP",
                             2,
                             {{"BRAID_CPU_DEVICES", "2"}, {"BRAID_THREADS", "1"}, {"BRAID_PIN", "1"}}},
                            run);
}
