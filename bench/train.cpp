// bench_train: one training step of Braid and of PyTorch, in Python and in C++, in one interleaved
// run. The faster peer counts.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <braid/braid.hpp>

#include "support/beside.hpp"
#include "support/block.hpp"
#include "support/lstm_lm.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/timing.hpp"

namespace {

struct Spec {
  bench::Beside row;
  std::function<std::vector<double>(int)> want;    // steps -> losses, by the plain reference
  std::function<std::vector<double>(int)> losses;  // steps -> losses
};

constexpr int kCheckedSteps = 3;

// All programs must compute the same losses before any of them is timed. A peer that cannot answer
// counts as missing; a peer with different losses ends the run.
bool agree(const Spec& spec, int threads, const bench::Peers& peers) {
  const std::vector<double> want = spec.want(kCheckedSteps);
  const char* const name = spec.row.name.c_str();
  const std::string ours = bench::compare_losses(spec.losses(kCheckedSteps), want);
  if (!ours.empty()) {
    std::fprintf(stderr, "%s, %d threads: braid disagrees with the reference: %s\n", name, threads,
                 ours.c_str());
    return false;
  }
  for (const auto& peer : peers.list) {
    if (!peer->available() || !spec.row.asks(*peer)) continue;
    const std::vector<double> theirs = peer->losses(name, threads, kCheckedSteps);
    if (theirs.empty()) {
      std::fprintf(stderr, "%s, %d threads: %s: %s\n", name, threads, peer->name().c_str(),
                   peer->error().c_str());
      continue;
    }
    const std::string what = bench::compare_losses(theirs, want);
    if (!what.empty()) {
      std::fprintf(stderr, "%s, %d threads: %s disagrees with the reference: %s\n", name, threads,
                   peer->name().c_str(), what.c_str());
      return false;
    }
  }
  return true;
}

int run(const bench::Options& options) {
  const std::string card = bench::machine_line();
  bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", card.c_str(), warning.c_str(), warning.empty() ? "" : "\n");
  bench::Peers peers(options, true);

  bench::Row linear(braid::nn::Linear(5, 2), bench::input(30, 5), bench::target(30, 2),
                    bench::kMse);
  bench::Row mlp(bench::make_mlp(512), bench::input(64, 784), bench::classes(64, 10),
                 bench::kCrossEntropy);
  bench::Row block(bench::Block(), bench::sequences(bench::kInputSeed),
                   bench::sequences(bench::kTargetSeed), bench::kMse);
  bench::LstmLmRow lstm_lm;
  const auto dense = [](std::vector<std::int64_t> sizes, std::int64_t rows, bool squared,
                        bool adam = false) {
    return [=](int steps) { return bench::reference_losses(sizes, rows, squared, steps, adam); };
  };
  bench::Row<decltype(bench::make_mlp(512)), decltype(bench::kCrossEntropy), braid::optim::Adam>
      adam(bench::make_mlp(512), bench::input(64, 784), bench::classes(64, 10),
           bench::kCrossEntropy);
  bench::Row cnn(bench::Cnn(), bench::images(64), bench::classes(64, 10), bench::kCrossEntropy);
  const auto time = [](auto& row) {
    return [&row](int steps) {
      row.reset();
      return bench::time_step(steps, [&] { row.step(); });
    };
  };
  const auto losses = [](auto& row) { return [&row](int steps) { return row.losses(steps); }; };
  const double none = bench::Beside::kNotShown, shown = bench::Beside::kShown;
  const std::vector<Spec> specs = {
      {{"linear_30x5x2_sgd", 6.0, none, 20000, 2000, time(linear)},
       dense({5, 2}, 30, true),
       losses(linear)},
      {{"mlp512_b64_sgd", 1.8, none, 50, 50, time(mlp)},
       dense({784, 512, 512, 10}, 64, false),
       losses(mlp)},
      {{"block_sgd", 1.7, none, 5, 5, time(block)},
       [](int steps) { return bench::block_reference(steps); },
       losses(block)},
      // Here part of PyTorch's time is page faults of newly allocated memory.
      {{"lstm_lm_sgd", 2.1, shown, 10, 10, time(lstm_lm)},
       [](int steps) { return bench::reference_lstm_lm_losses(steps); },
       losses(lstm_lm)},
      // Compared with PyTorch's fused Adam, which only its Python interface has, and with its
      // default Adam.
      {{"mlp512_b64_adam_fused", 1.5, none, 50, 50, time(adam), "torch-python"},
       dense({784, 512, 512, 10}, 64, false, true),
       losses(adam)},
      {{"mlp512_b64_adam", 2.5, none, 50, 50, time(adam)},
       dense({784, 512, 512, 10}, 64, false, true),
       losses(adam)},
      {{"cnn_b64_sgd", 1.6, none, 20, 20, time(cnn)},
       [](int steps) { return bench::reference_cnn_losses(64, steps); },
       losses(cnn)},
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
    for (int threads : counts)
      all_met = bench::measure(spec.row, threads, options.rounds, peers, rows, noise) && all_met;
  bench::write_json(options, machine.set("noise", noise), rows);
  return options.strict && !all_met ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(
      argc, argv, {"bench_train", "training steps beside PyTorch's", 2, {{"BRAID_PIN", "1"}}}, run);
}
