// bench_ddp: DistributedDataParallel on two ranks, which are processes with one core each, beside
// PyTorch's over gloo in the same run; all-reduce beside plain MPI; and both through a link of 1
// Gbit/s between two network namespaces.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "scale/model.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/peer.hpp"
#include "support/reference.hpp"
#include "support/timing.hpp"

namespace {

constexpr int kRanks = 2, kCheckedSteps = 3;
constexpr double kBar = 1.3, kShareBar = 0.9, kCompressionBar = 1.7, kPlainBar = 1.1;

struct Net {
  const char* row;
  int rows;  ///< of one rank
  int steps;
};
constexpr Net kNets[] = {{"mlp2048_b256_ddp", 256, 20}, {"cnn_b64_ddp", 64, 40}};

struct Result {
  std::vector<bench::Json> rows;
  bool good = true;
  void bar(bool met, const char* what) {
    if (met) return;
    std::printf("  MISSED: %s\n", what);
    good = false;
  }
};

/// Both must compute the same losses before either is timed.
bool agree(bench::Peer& ours, bench::Peer* theirs, const Net& net) {
  const std::vector<double> got = ours.losses(net.row, 1, kCheckedSteps);
  if (got.empty()) throw std::runtime_error(std::string(net.row) + ": braid: " + ours.error());
  if (theirs == nullptr) return true;
  const std::string what = bench::compare_losses(got, theirs->losses(net.row, 1, kCheckedSteps));
  if (!what.empty()) std::printf("%s: the losses differ: %s\n", net.row, what.c_str());
  return what.empty();
}

void train(bench::Peer& ours, bench::Peer* theirs, int rounds, Result& result) {
  std::printf("\n%-20s %14s %14s %8s %8s\n", "2 ranks, 1 core each", "braid rows/s", "torch rows/s",
              "ratio", "noise");
  for (const Net& net : kNets) {
    if (!agree(ours, theirs, net)) {
      result.good = false;
      continue;
    }
    std::vector<std::function<double()>> contenders{
        [&] { return ours.run(net.row, 1, net.steps).value_or(0); }};
    if (theirs != nullptr)
      contenders.emplace_back([&] { return theirs->run(net.row, 1, net.steps).value_or(0); });
    const std::vector<bench::Series> series = bench::interleave(rounds, contenders);
    const auto rate = [&](const bench::Series& s) {
      return s.time() > 0 ? 1e6 * net.rows * kRanks / s.time() : 0;
    };
    const double mine = rate(series[0]), peer = theirs == nullptr ? 0 : rate(series[1]);
    const double noise = std::max(series[0].noise(), theirs == nullptr ? 0 : series[1].noise());
    std::printf("%-20s %14.0f %14.0f %8.2f %8.3f\n", net.row, mine, peer,
                peer > 0 ? mine / peer : 0, noise);
    bench::Json row;
    row.set("row", net.row).set("braid_rows_s", mine).set("torch_rows_s", peer);
    result.rows.push_back(row.set("noise", noise));
    if (peer > 0) result.bar(mine >= kBar * peer, "1.3 times PyTorch's rows/s");
  }
}

void all_reduce(bench::Peer& ours, int rounds, Result& result) {
  std::printf("\n%-12s %12s %12s %8s\n", "all-reduce", "braid us", "MPI us", "ratio");
  std::vector<bench::scale::Sample> samples;
  for (std::int64_t bytes = 1024; bytes <= (64 << 20); bytes *= 4) {
    const int iterations = bytes <= (1 << 18) ? 60 : 12;
    const std::string size = std::to_string(bytes);
    const std::vector<bench::Series> series = bench::interleave(
        rounds, {[&] { return ours.run("ours_" + size, 1, iterations).value_or(0); },
                 [&] { return ours.run("plain_" + size, 1, iterations).value_or(0); }});
    const double mine = series[0].time(), plain = series[1].time();
    std::printf("%9lld KiB %10.1f %12.1f %8.2f\n", static_cast<long long>(bytes >> 10), mine, plain,
                plain > 0 ? mine / plain : 0);
    bench::Json row;
    row.set("all_reduce_bytes", static_cast<double>(bytes)).set("braid_us", mine);
    result.rows.push_back(row.set("mpi_us", plain));
    samples.push_back({static_cast<double>(bytes), mine / 1e6});
    if (bytes >= (1 << 20))
      result.bar(mine <= kPlainBar * plain, "within 10 % of MPI_Allreduce from 1 MiB on");
  }
  const bench::scale::Link link = bench::scale::fit(samples, kRanks, bench::scale::Algorithm::ring);
  std::printf(
      "fitted: alpha %.3g us, beta %.4g GB/s (./dev bench scale --alpha %.3g --beta %.4g)\n",
      1e6 * link.alpha, link.beta / 1e9, 1e6 * link.alpha, link.beta / 1e9);
  bench::Json row;
  result.rows.push_back(row.set("alpha_s", link.alpha).set("beta_bytes_s", link.beta));
}

/// Runs a command; returns its last line that begins with {, or nothing.
std::string last_line(const std::string& command) {
  std::string last, line;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {};
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    if (line.starts_with("{")) last = line;
    else std::printf("  %s\n", line.c_str());
    line.clear();
  }
  pclose(pipe);
  return last;
}

double value_of(const std::string& json, const std::string& key) {
  const auto at = json.find('"' + key + "\": ");
  return at == std::string::npos ? 0 : std::atof(json.c_str() + at + key.size() + 4);
}

void wire(const bench::Options& options, Result& result) {
  const std::string hosts = BRAID_SOURCE_DIR "/tests/processes/two_hosts.sh --rate " +
                            options.value("--rate", "1gbit") + ' ';
  std::printf(
      "\nthrough %s, 12 layers, 48 MiB of gradients, buckets of 4 MiB (ms). The latency is "
      "that of the\nkernel: it cannot be shaped here, and alpha of a real network is "
      "larger.\n",
      options.value("--rate", "1gbit").c_str());
  setenv("BRAID_PIN_CORES", bench::core_list(kRanks).c_str(), 1);
  setenv("BRAID_THREADS", "1", 1);
  std::string mine = last_line(hosts + "mpi " + BRAID_DDP_WORKER + " wire");
  std::string theirs;
  if (!options.no_peers)
    theirs = last_line(hosts + "each " + options.peers +
                       "/bin/python " BRAID_SOURCE_DIR "/bench/peers/ddp_wire.py");
  std::printf("%-8s %9s %9s %9s %9s %8s %9s %9s %12s\n", "", "compute", "reduce", "bound", "step",
              "share", "few rows", "bfloat16", "compression");
  for (const std::string* one : {&mine, &theirs}) {
    if (one->empty()) continue;
    const auto v = [&](const char* key) { return value_of(*one, key); };
    const char* const name = one == &mine ? "braid" : "torch";
    std::printf("%-8s %9.1f %9.1f %9.1f %9.1f %8.2f %9.1f %9.1f %12.2f\n", name, v("compute"),
                v("reduce"), v("bound"), v("step"), v("share"), v("few"), v("few_bf16"),
                v("compression"));
    bench::Json row;
    row.set("wire", name).set("step_ms", v("step")).set("bound_ms", v("bound"));
    result.rows.push_back(row.set("share", v("share")).set("compression", v("compression")));
  }
  if (mine.empty()) {
    std::printf("  not measured\n");
    return;
  }
  result.bar(value_of(mine, "share") >= kShareBar, "0.9 of what overlap can hide");
  result.bar(value_of(mine, "compression") >= kCompressionBar, "1.7 times with bfloat16");
}

int run(const bench::Options& options) {
  const std::string card = bench::machine_line(), warning = bench::busy_warning();
  bench::Json machine = bench::machine_card();
  std::printf("%s\n%s%s", card.c_str(), warning.c_str(), warning.empty() ? "" : "\n");
  setenv("BRAID_DDP_WORKER", BRAID_DDP_WORKER, 1);
  const std::string cores = bench::core_list(kRanks);
  bench::Peer ours("braid", BRAID_SOURCE_DIR "/bench/ddp/worker.sh", cores);
  if (!ours.available()) throw std::runtime_error("braid's ranks do not start: " + ours.error());
  Result result;
  if (options.check) {
    for (const Net& net : kNets) static_cast<void>(agree(ours, nullptr, net));
    std::printf("ddp: both nets train on two ranks\n");
    return 0;
  }
  std::unique_ptr<bench::Peer> theirs;
  if (!options.no_peers) {
    theirs = std::make_unique<bench::Peer>("torch", options.peers + "/bin/peer-python", cores);
    if (!theirs->available()) std::printf("torch: %s\n", theirs->error().c_str());
  }
  bench::Peer* const peer = theirs != nullptr && theirs->available() ? theirs.get() : nullptr;
  if (!options.has("--only-wire")) {
    train(ours, peer, options.rounds, result);
    all_reduce(ours, options.rounds, result);
  }
  if (!options.has("--no-wire")) wire(options, result);
  bench::write_json(options, machine, result.rows);
  return options.strict && !result.good ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(
      argc, argv,
      {.name = "bench_ddp",
       .about = "DistributedDataParallel on two processes, beside PyTorch's over gloo",
       .cores = 0,
       .options = {{"--rate", "RATE",
                    "speed of the link between the two namespaces, as tc writes it"},
                   {"--no-wire", nullptr, "without the link, which needs root"},
                   {"--only-wire", nullptr, "only the link"}}},
      run);
}
