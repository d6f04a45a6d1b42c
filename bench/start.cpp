// bench_start: the time from the start of a program to the end of its first training step (the MLP
// of the row mlp512_b64_sgd, one thread), and its peak memory by then. Compares Braid with oneDNN,
// Braid with its own kernels only, and PyTorch's C++ interface. Every turn is a separate process.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/peer.hpp"
#include "support/reference.hpp"
#include "support/timing.hpp"

namespace {

constexpr const char* kRow = "mlp512_b64_sgd";
constexpr int kRoundsEach = 2;  // times --rounds: 20 runs by default

struct Program {
  std::string name, path, variable;
  double ms_bar, mb_bar;  // 0: no bar
  std::vector<double> mb = {};

  [[nodiscard]] std::unique_ptr<bench::Peer> start() const {
    return std::make_unique<bench::Peer>(name, path, bench::core_list(1), variable);
  }
  /// Returns the time in us from the start of a process to the end of its first step; 0 if it
  /// failed.
  [[nodiscard]] double run() {
    const auto begin = std::chrono::steady_clock::now();
    const std::unique_ptr<bench::Peer> process = start();
    const bool trained = !process->losses(kRow, 1, 1).empty();
    const double us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    if (!trained) std::fprintf(stderr, "%s: %s\n", name.c_str(), process->error().c_str());
    mb.push_back(process->peak_bytes() / 1e6);
    return trained ? us : 0;
  }
};

/// Returns whether the program starts and its losses agree with the plain reference. Prints the
/// reason if not.
bool agrees(const Program& program) {
  const std::unique_ptr<bench::Peer> process = program.start();
  const std::vector<double> got = process->losses(kRow, 1, 2);
  const std::string wrong =
      got.empty()
          ? process->error()
          : bench::compare_losses(got, bench::reference_losses({784, 512, 512, 10}, 64, false, 2));
  if (!wrong.empty()) std::fprintf(stderr, "%s: %s\n", program.name.c_str(), wrong.c_str());
  return wrong.empty();
}

std::string verdict(double figure, double bar, const char* unit) {
  if (bar == 0) return "";
  char text[64];
  std::snprintf(text, sizeof text, "  bar %.0f %s %s", bar, unit, figure < bar ? "met" : "MISSED");
  return text;
}

int run(const bench::Options& options) {
  bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", bench::machine_line().c_str(), warning.c_str(),
              warning.empty() ? "" : "\n");
  std::vector<Program> programs = {
      {"braid", BRAID_FIRST_STEP, "", 60, 40},
      {"braid, own kernels", BRAID_FIRST_STEP, "BRAID_BENCH_OWN_KERNELS=1", 20, 0}};
  for (const Program& ours : programs)
    if (!agrees(ours)) return 1;
  if (!options.no_peers) {
    programs.push_back({"torch-cpp", options.peers + "/bin/peer-libtorch", "", 0, 0});
    if (!agrees(programs.back())) programs.pop_back();  // agrees() printed the reason
  }
  std::printf("the losses of all programs agree with the plain reference to 1e-4\n");
  if (options.check) return 0;

  std::vector<std::function<double()>> contenders;
  for (Program& program : programs) contenders.push_back([&program] { return program.run(); });
  const std::vector<bench::Series> series =
      bench::interleave(kRoundsEach * options.rounds, contenders);
  std::vector<bench::Json> table;
  bool all_met = true;
  double noise = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Program& p = programs[i];
    const double ms = series[i].time() / 1e3, mb = bench::median(p.mb);
    all_met = all_met && !series[i].failed && (p.ms_bar == 0 || ms < p.ms_bar) &&
              (p.mb_bar == 0 || mb < p.mb_bar);
    noise = std::max(noise, series[i].noise());
    std::printf("%-20s %8.1f ms (+-%.0f %%)%s  %6.1f MB%s  (%zu runs)\n", p.name.c_str(), ms,
                100 * series[i].noise(), verdict(ms, p.ms_bar, "ms").c_str(), mb,
                verdict(mb, p.mb_bar, "MB").c_str(), series[i].us.size());
    bench::Json row;
    row.set("name", "start_" + std::string(kRow))
        .set("program", p.name)
        .set("ms", ms)
        .set("peak_mb", mb)
        .set("runs", static_cast<int>(series[i].us.size()));
    if (p.ms_bar > 0) row.set("bar_ms", p.ms_bar);
    if (p.mb_bar > 0) row.set("bar_mb", p.mb_bar);
    table.push_back(row);
  }
  if (programs.size() < 3) std::printf("no peer\n");
  bench::write_json(options, machine.set("noise", noise), table);
  return options.strict && !all_met ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(
      argc, argv,
      {"bench_start",
       "from the start of a program to its first training step, beside LibTorch",
       1,
       {}},
      run);
}
