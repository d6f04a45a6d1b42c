// bench_split: splits batches over 1 to n logical CPU devices, with one thread each. Compares this
// with one device, with independent runs at the same time, with PyTorch's DDP (gloo, two
// processes), with PyTorch using as many intra-op threads, and with the prediction of the report's
// cost model.
//   strong  an equal batch in all:    efficiency = T(1 device) / (n T(n devices))
//   weak    an equal batch a device:  efficiency = T(1 device) / T(n devices)
// The ceiling is the same ratio with the time of n independent runs at the same time, one on each
// device, in place of T(n).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "split/measure.hpp"
#include "split/results.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"

namespace {

using namespace bench::split;

constexpr int kMostDevices = 8;

[[noreturn]] void refuse(const char* option, const std::string& expected, const std::string& got) {
  std::fprintf(stderr, "%s: expected %s, got '%s'\n", option, expected.c_str(), got.c_str());
  std::exit(2);
}

std::vector<const Net*> chosen_nets(const std::string& names) {
  std::vector<const Net*> list;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(',', at), names.size());
    const std::string name = names.substr(at, end - at);
    const auto found = std::find_if(nets().begin(), nets().end(),
                                    [&](const Net& net) { return net.name == name; });
    if (found == nets().end()) refuse("--models", "some of mlp,cnn,lstm,transformer", names);
    if (std::find(list.begin(), list.end(), &*found) == list.end()) list.push_back(&*found);
    at = end + 1;
  }
  return list;
}

std::vector<Update> chosen_updates(const std::string& name) {
  if (name == "both") return {Update::broadcast, Update::replicated};
  if (name == "broadcast") return {Update::broadcast};
  if (name == "replicated") return {Update::replicated};
  refuse("--update", "broadcast, replicated or both", name);
}

/// The path of a report without its extension: in the folder of the JSON file, else in the build
/// folder. The first report is named split-report, the others also have the names of the net and
/// the update.
std::string report_stem(const bench::Options& options, const Net& net, Update update, bool first) {
  const std::filesystem::path folder = options.json.empty()
                                           ? std::filesystem::path(BRAID_BENCH_FOLDER)
                                           : std::filesystem::path(options.json).parent_path();
  std::string name = "split-report";
  if (!first) name += "-" + net.name + (update == Update::replicated ? "-replicated" : "");
  return (folder / name).string();
}

int run(const bench::Options& options) {
  const int devices = options.number("--devices", 2, kMostDevices);
  const std::vector<const Net*> chosen =
      chosen_nets(options.value("--models", "mlp,cnn,lstm,transformer"));
  Setup setup{.devices = devices,
              .updates = chosen_updates(options.value("--update", "both")),
              .rounds = options.rounds,
              .no_peers = options.no_peers};
  setenv("BRAID_CPU_DEVICES", std::to_string(devices).c_str(), 1);
  setup.cores = bench::physical_cores();
  bench::stay_on(static_cast<std::size_t>(devices));
  bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", bench::machine_line().c_str(), warning.c_str(),
              warning.empty() ? "" : "\n");
  // before Braid creates or pins threads: a child inherits its parent's affinity mask
  std::unique_ptr<bench::Peer> peer;
  if (!options.no_peers) {
    peer = std::make_unique<bench::Peer>("torch-python", options.peers + "/bin/peer-python",
                                         bench::core_list(static_cast<std::size_t>(devices)));
    if (peer->available()) setup.peer = peer.get();
    else std::printf("torch-python is missing: %s\n", peer->error().c_str());
  }

  int peers = 0, silent = 0;
  for (const Net* net : chosen) {
    const Agreement agreement = agree(*net, setup);
    if (!agreement.good) return 1;
    peers += agreement.peers, silent += agreement.silent;
  }
  std::printf("%zu net%s: the losses of 1 to %d devices agree with the plain reference to 1e-4",
              chosen.size(), chosen.size() == 1 ? "" : "s", devices);
  if (setup.peer != nullptr) std::printf(", those of %d rows of the peers with them", peers);
  if (silent > 0) std::printf("; %d rows of the peers gave none", silent);
  std::printf("\n");
  if (options.check) return 0;

  Table table;
  bool first_report = true;
  for (const Net* net : chosen) {
    std::printf("%s: %s\n", net->name.c_str(), net->about.c_str());
    const Measured measured = measure(*net, setup);
    for (const Update update : setup.updates) {
      if (devices == 1 && update != setup.updates.front()) continue;
      const std::string stem = report_stem(options, *net, update, first_report);
      first_report = false;
      const auto predictions = write_report(*net, setup, update, measured, stem);
      add_rows(*net, setup, update, measured, predictions, table);
      if (options.has("--trace"))
        add_overhead(*net, setup, update, recorder_overhead(*net, setup, update), table);
      std::printf("  report: %s.html, .txt, .json, .trace.json\n", stem.c_str());
    }
  }
  bench::write_json(options, machine.set("noise", table.noise), table.rows);
  const int open = table.missed + table.noisy + table.not_evaluated;
  if (open > 0)
    std::printf("%d bars met, %d missed, %d too noisy to say, %d not evaluated\n", table.met,
                table.missed, table.noisy, table.not_evaluated);
  else
    std::printf("all %d bars met%s\n", table.met,
                options.no_peers ? "; those beside peers were not asked for" : "");
  return options.strict && open > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(
      argc, argv,
      {"bench_split",
       "batches split over logical devices, beside one device, DDP and intra-op threads",
       0,
       {{"BRAID_THREADS", "1"}, {"BRAID_PIN", "1"}},
       {{"--devices", "N", "logical devices (2); more than cores: not evaluated"},
        {"--models", "LIST", "of mlp,cnn,lstm,transformer"},
        {"--update", "MODE",
         "optimizer: broadcast (first device's weights go out), replicated (every device steps), "
         "both"},
        {"--trace", nullptr, "time what the report's recorder adds to a step"}}},
      run);
}
