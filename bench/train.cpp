// bench_train: one training step beside PyTorch's, in Python and in C++, in one interleaved run; the faster peer counts.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <braid/braid.hpp>

#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/peer.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/timing.hpp"

namespace {

using Peers = std::vector<std::unique_ptr<bench::Peer>>;

struct Spec {
  std::string name;
  double bar;        // how many times faster than the faster peer
  int ours, theirs;  // steps a turn
  std::vector<std::int64_t> sizes;
  std::int64_t rows;
  bool squared;
  std::function<double(int)> time;                 // steps -> us
  std::function<std::vector<double>(int)> losses;  // steps -> losses
};

constexpr int kCheckedSteps = 3;

// All sides must train alike before any is timed. A peer that cannot answer is missing; one that answers otherwise ends the run.
bool agree(const Spec& spec, int threads, Peers& peers) {
  const std::vector<double> want = bench::reference_losses(spec.sizes, spec.rows, spec.squared, kCheckedSteps);
  const std::string ours = bench::compare_losses(spec.losses(kCheckedSteps), want);
  if (!ours.empty()) {
    std::fprintf(stderr, "%s, %d threads: braid disagrees with the reference: %s\n", spec.name.c_str(), threads, ours.c_str());
    return false;
  }
  for (auto& peer : peers) {
    if (!peer->available()) continue;
    const std::vector<double> theirs = peer->losses(spec.name, threads, kCheckedSteps);
    if (theirs.empty()) {
      std::fprintf(stderr, "%s, %d threads: %s: %s\n", spec.name.c_str(), threads, peer->name().c_str(), peer->error().c_str());
      continue;
    }
    const std::string what = bench::compare_losses(theirs, want);
    if (!what.empty()) {
      std::fprintf(stderr, "%s, %d threads: %s disagrees with the reference: %s\n", spec.name.c_str(), threads, peer->name().c_str(), what.c_str());
      return false;
    }
  }
  return true;
}

// Times one row at one number of threads; prints its line. False if the bar is missed or cannot be judged.
bool measure(const Spec& spec, int threads, int rounds, Peers& peers, std::vector<bench::Json>& rows, double& noise) {
  braid::set_num_threads(threads);
  std::vector<std::function<double()>> contenders = {[&] { return spec.time(spec.ours); }};
  for (auto& peer : peers) contenders.push_back([&, p = peer.get()] { return p->run(spec.name, threads, spec.theirs).value_or(0); });
  const std::vector<bench::Series> series = bench::interleave(rounds, contenders);
  const double ours = series[0].time();
  std::size_t best = 0;
  std::string all;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const double us = series[i + 1].time();
    if (!(us > 0)) {
      if (peers[i]->available()) std::fprintf(stderr, "%s: %s: %s\n", spec.name.c_str(), peers[i]->name().c_str(), peers[i]->error().c_str());
      continue;
    }
    char text[120];
    std::snprintf(text, sizeof text, "%s%s %.2f us (+-%.0f %%)", all.empty() ? "" : ", ", peers[i]->name().c_str(), us, 100 * series[i + 1].noise());
    all += text;
    if (best == 0 || us < series[best].time()) best = i + 1;
  }
  bench::Json row;
  row.set("name", spec.name).set("device", "cpu:0").set("threads", threads).set("ours_us", ours);
  if (best > 0) {
    const double theirs = series[best].time(), ratio = theirs / ours;
    row.set("peer", peers[best - 1]->name()).set("peer_us", theirs).set("ratio", ratio);
    const double apart = std::max(series[0].noise(), series[best].noise());
    noise = std::max(noise, apart);
    const bool clear = apart < 0.5 && std::abs(ratio - 1) > 2 * apart, met = clear && ratio >= spec.bar;
    std::printf("%-18s %d  %10.2f us (+-%.0f %%)  %10.2f us  %6.2f x  bar %.1f x %-9s  [%s]\n", spec.name.c_str(), threads, ours, 100 * series[0].noise(),
                theirs, ratio, spec.bar,
                !clear ? "TOO NOISY"
                : met  ? "met"
                       : "MISSED",
                all.c_str());
    rows.push_back(row);
    return met;
  }
  row.set("peer", nullptr).set("peer_us", nullptr).set("ratio", nullptr);
  std::printf("%-18s %d  %10.2f us (+-%.0f %%)  %13s  %8s  bar %.1f x not judged: no peer\n", spec.name.c_str(), threads, ours, 100 * series[0].noise(), "-",
              "-", spec.bar);
  rows.push_back(row);
  return false;
}

int run(const bench::Options& options) {
  const std::string cores = bench::core_list(2);
  const std::string card = bench::machine_line();
  bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", card.c_str(), warning.c_str(), warning.empty() ? "" : "\n");
  Peers peers;  // started before Braid makes threads or pins one: a child inherits its parent's mask
  if (!options.no_peers)
    for (const char* name : {"torch-python", "torch-cpp"}) {
      const std::string program = options.peers + (std::string(name) == "torch-cpp" ? "/bin/peer-libtorch" : "/bin/peer-python");
      peers.push_back(std::make_unique<bench::Peer>(name, program, cores));
      if (!peers.back()->available()) std::printf("%s is missing: %s\n", name, peers.back()->error().c_str());
    }

  bench::Row linear(braid::nn::Linear(5, 2), bench::input(30, 5), bench::target(30, 2), bench::kMse);
  bench::Row mlp(bench::make_mlp(512), bench::input(64, 784), bench::classes(64, 10), bench::kCrossEntropy);
  const auto time = [](auto& row) {
    return [&row](int steps) {
      row.reset();
      return bench::time_step(steps, [&] { row.step(); });
    };
  };
  const auto losses = [](auto& row) { return [&row](int steps) { return row.losses(steps); }; };
  const std::vector<Spec> specs = {
      {"linear_30x5x2_sgd", 6.0, 20000, 2000, {5, 2}, 30, true, time(linear), losses(linear)},
      {"mlp512_b64_sgd", 1.8, 50, 50, {784, 512, 512, 10}, 64, false, time(mlp), losses(mlp)},
  };

  std::vector<int> counts = {1};
  if (bench::cores().size() > 1) counts.push_back(2);
  else std::printf("one processor: no rows with 2 threads\n");
  for (const Spec& spec : specs)
    for (int threads : counts) {
      braid::set_num_threads(threads);
      if (!agree(spec, threads, peers)) return 1;
    }
  std::printf("the losses of all sides agree with the plain reference to 1e-4\n");
  if (options.check) return 0;

  std::vector<bench::Json> rows;
  bool all_met = true;
  double noise = 0;
  for (const Spec& spec : specs)
    for (int threads : counts) all_met = measure(spec, threads, options.rounds, peers, rows, noise) && all_met;
  bench::write_json(options, machine.set("noise", noise), rows);
  return options.strict && !all_met ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::read_options(argc, argv, "bench_train: training steps beside PyTorch's");
  bench::stay_on(2);
  setenv("BRAID_PIN", "1", 1);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_train: %s\n", error.what());
    return 1;
  }
}
