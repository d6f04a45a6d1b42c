// bench_transfer: the cost of copying a tensor. Measures copies of 4 KB to 1 GB from the host to a
// device, back, to another device and within a device; fits latency + bytes / rate to the times;
// and computes from which amount of work on a copy pays. Each is compared with std::memcpy of the
// same size and, on CPU devices, with PyTorch.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/kernels/cuda.hpp>

#include "support/beside.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/peer.hpp"
#include "support/timing.hpp"
#include "transfer/fit.hpp"
#include "transfer/moves.hpp"
#include "transfer/sizes.hpp"
#include "transfer/table.hpp"
#include "transfer/verdict.hpp"

namespace bench::transfer {
namespace {

using braid::Device;
using braid::DeviceType;
using braid::parallel::CostPoint;

constexpr std::size_t kMostEmulated = std::size_t{16} << 20;  // the checker examines every 4 bytes

std::vector<Device> devices_of(const std::string& text) {
  std::vector<Device> list;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    list.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  const bool pair = list.size() == 2 && list[0] != list[1] && list[0].type() == list[1].type();
  if (list.size() != 1 && !pair)
    throw braid::ArgumentError(
        "--devices: expected one device or two of one kind, as cuda:0,cuda:1, got '" + text + "'");
  return list;
}

// The devices named by --devices, else the first two besides the host.
Ends find_ends(const Options& options) {
  std::vector<Device> list;
  if (options.has("--devices")) {
    list = devices_of(options.value("--devices", ""));
  } else {
    list = braid::devices();
    if (list[0].type() == DeviceType::cpu) list.erase(list.begin());  // cpu:0 is the host
    list.resize(std::min<std::size_t>(list.size(), 2));
  }
  for (const Device device : list) {
    (void)braid::device_context(device);  // exists
    if (device == Device("cpu:0"))
      throw braid::DeviceError(
          "bench_transfer: expected devices other than cpu:0, which is the host");
  }
  return {Device("cpu:0"), list[0], list.size() == 2 ? list[1] : list[0], list.size() == 2};
}

bool emulated(const Ends& ends) { return ends.queued() && braid::cuda::is_emulated(); }

// ---- the checks --------------------------------------------------------------------------------

// Checks sizes near those at which the copies change their method: the tile size on the CPU, the
// size of a chunk of pinned memory on CUDA devices.
bool all_arrive(const Ends& ends) {
  std::size_t count = 0;
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{4096}, (std::size_t{256} << 10) + 4,
                                  (std::size_t{2} << 20) + 4, std::size_t{5} << 20}) {
    const Buffers buffers(ends, bytes);
    for (const Way& way : ways(ends, buffers)) {
      ++count;
      const std::string wrong = disagreement(way, buffers);
      if (wrong.empty()) continue;
      std::fprintf(stderr, "%s, %zu bytes: %s\n", way.text().c_str(), bytes, wrong.c_str());
      return false;
    }
  }
  std::printf("every byte arrives, in all %zu ways and sizes\n", count);
  return true;
}

// Tests the fit with a known line, and with two known lines that meet at a bend.
bool fit_is_right() {
  std::vector<CostPoint> straight, bent;
  for (const std::size_t size : sizes_up_to(std::size_t{1} << 30)) {
    const auto bytes = static_cast<double>(size);
    straight.push_back({bytes, 2e-6 + bytes / 20e9});
    bent.push_back({bytes, bytes < 5e6 ? 1e-6 + bytes / 40e9 : 100e-6 + bytes / 8e9});
  }
  const Curve one = fit_curve(straight), two = fit_curve(bent);
  const auto near = [](double got, double want) { return std::abs(got / want - 1) < 1e-6; };
  return near(one.line.latency, 2e-6) && near(1 / one.line.slope, 20e9) && one.misfit < 1e-6 &&
         two.bend > 4e6 && two.bend < 17e6 && two.bent_misfit < 1e-6 &&
         near(1 / two.small.slope, 40e9) && near(1 / two.large.slope, 8e9) && two.misfit > 0.1;
}

// ---- the times ---------------------------------------------------------------------------------

/// Returns PyTorch's row for a way of copying; empty except on the CPU, where both copy within the
/// same memory.
std::string peer_row(const Ends& ends, const Way& way) {
  if (ends.queued() || way.call == Call::driver) return {};
  return (way.call == Call::to ? "clone_" : "copy_") +
         std::to_string(way.source.storage()->bytes());
}

/// Checks 256 evenly spaced numbers of what PyTorch copied. Returns an empty text or a description
/// of the error.
std::string wrong_peer(Peer& peer, const std::string& row, std::size_t bytes) {
  constexpr int kSamples = 256;
  const std::vector<double> got = peer.losses(row, 1, kSamples);
  if (got.size() != kSamples) return peer.error();
  const std::size_t step = bytes / 4 / kSamples;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != static_cast<double>(i * step))
      return braid::str(row, ": number ", i * step, " is ", got[i]);
  return {};
}

/// Two PyTorch processes: one with default settings, and one with a malloc that keeps its memory.
/// Otherwise new memory costs page faults.
struct Torch {
  std::unique_ptr<Peer> plain, tuned;
};

void measure_size(const Ends& ends, std::size_t bytes, int rounds, const Torch& torch,
                  std::vector<Column>& columns) {
  const Buffers buffers(ends, bytes);
  const std::vector<Way> list = ways(ends, buffers);
  if (columns.empty())
    for (const Way& w : list)
      columns.push_back({w.direction,
                         w.memory,
                         w.mode,
                         w.call_text(),
                         w.text(),
                         braid::str(w.source.device()),
                         braid::str(w.destination),
                         {},
                         {}});
  std::vector<std::vector<double>> calls(list.size());
  std::vector<std::function<double()>> contenders;
  for (std::size_t i = 0; i < list.size(); ++i)
    contenders.emplace_back([&, i] {
      const Timed t = time_way(list[i]);
      calls[i].push_back(t.call_us);
      return t.us;
    });
  contenders.emplace_back([&] { return time_memcpy(buffers); });
  std::map<std::string, std::size_t> plain, tuned;  // row -> contender
  const int iterations = static_cast<int>(std::clamp(4e7 / static_cast<double>(bytes), 1.0, 400.0));
  const auto add_peer = [&](Peer* peer, const std::string& row,
                            std::map<std::string, std::size_t>& place) {
    if (!peer || row.empty() || place.count(row) > 0) return;
    if (const std::string wrong = wrong_peer(*peer, row, bytes); !wrong.empty())
      throw braid::Error(peer->name() + ": " + wrong);
    place[row] = contenders.size();
    contenders.emplace_back(
        [peer, row, iterations] { return peer->run(row, 1, iterations).value_or(0); });
  };
  for (const Way& way : list) {
    const std::string row = peer_row(ends, way);
    add_peer(torch.plain.get(), row, plain);
    if (way.call == Call::to) add_peer(torch.tuned.get(), row, tuned);
  }
  const std::vector<Series> series = interleave(rounds, contenders);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto of = [&](const std::map<std::string, std::size_t>& place) {
      const auto found = place.find(peer_row(ends, list[i]));
      return found == place.end() ? 0.0 : series[found->second].time();
    };
    columns[i].samples.push_back({bytes, series[i].time(), median(calls[i]), series[i].noise(),
                                  series[list.size()].time(), of(plain), of(tuned)});
  }
}

// ---- the program -------------------------------------------------------------------------------

int run(const Options& options) {
  Json machine = machine_card();
  const std::string warning = busy_warning();
  std::printf("%s\n%s%s", machine_line().c_str(), warning.c_str(), warning.empty() ? "" : "\n");
  Torch torch;  // before Braid creates or pins threads: a child inherits the affinity mask
  if (!options.no_peers && !options.check) {
    torch.plain =
        std::make_unique<Peer>("torch-python", options.peers + "/bin/peer-python", core_list(1));
    torch.tuned = std::make_unique<Peer>("torch-python", options.peers + "/bin/peer-python",
                                         core_list(1), kTunedMalloc);
    if (!torch.plain->available())
      std::printf("torch-python is missing: %s\n", torch.plain->error().c_str());
    if (!torch.plain->available() || !torch.tuned->available()) torch = {};
  }
  const Ends ends = find_ends(options);
  const bool emulation = emulated(ends), simulated = emulation || !ends.queued();
  const std::string description = braid::device_context(ends.first).backend->description();
  std::printf("from %s to %s and back (%s)", braid::str(ends.host).c_str(),
              braid::str(ends.first).c_str(), description.c_str());
  if (ends.two) std::printf(", and on to %s", braid::str(ends.second).c_str());
  std::printf("%s\n", emulation   ? ": EMULATED devices, whose times say nothing about a GPU"
                      : simulated ? ": logical devices, which share one memory"
                                  : "");
  if (!fit_is_right())
    throw braid::Error("the fit does not find the lines that times were made from");
  if (!all_arrive(ends)) return 1;
  if (options.check) return 0;
  if (ends.queued()) torch = {};  // PyTorch is a peer on the CPU only

  std::vector<Column> columns;
  std::vector<Json> rows;
  for (const Absent& a : absent_ways(ends)) {
    std::printf("not measured: %s, %s, %s: %s\n", a.direction.c_str(), a.memory.c_str(),
                a.mode.c_str(), a.reason.c_str());
    Json row;
    row.set("name", "move")
        .set("direction", a.direction)
        .set("memory", a.memory)
        .set("mode", a.mode)
        .set("us", nullptr);
    rows.push_back(row.set("skipped", a.reason));
  }
  const std::size_t usual = emulation ? kMostEmulated : std::size_t{1} << 30;
  for (const std::size_t bytes : sizes_up_to(
           options.has("--max-bytes") ? bytes_of(options.value("--max-bytes", "")) : usual)) {
    // Tensors in use: four buffers, the results of `to` on each device and one temporary; three for
    // each PyTorch process.
    constexpr int kOurs = 8, kTorch = 6;
    const Torch no_torch;
    std::string reason = does_not_fit(bytes, kOurs);
    const std::string alone = torch.plain ? does_not_fit(bytes, kOurs + kTorch) : std::string();
    if (reason.empty() && !alone.empty())
      std::printf("%s: without PyTorch: %s\n", text_of_bytes(static_cast<double>(bytes)).c_str(),
                  alone.c_str());
    try {
      if (reason.empty())
        measure_size(ends, bytes, options.rounds, alone.empty() ? torch : no_torch, columns);
    } catch (const braid::OutOfMemoryError& error) {
      reason = error.what();
    }
    for (const Device device : {ends.host, ends.first, ends.second}) braid::empty_cache(device);
    if (reason.empty()) continue;
    std::printf("%s: not measured: %s\n", text_of_bytes(static_cast<double>(bytes)).c_str(),
                reason.c_str());
    Json row;
    rows.push_back(row.set("name", "move")
                       .set("bytes", static_cast<int>(bytes))
                       .set("us", nullptr)
                       .set("skipped", reason));
  }
  double noise = 0;
  for (Column& column : columns) {
    std::vector<CostPoint> points;
    for (const Sample& s : column.samples) {
      points.push_back({static_cast<double>(s.bytes), s.us * 1e-6});
      noise = std::max(noise, s.noise);
    }
    column.curve = fit_curve(points);
    print(column, ends.queued());
    add_rows(column, torch.plain ? torch.plain->name() : "", simulated, rows);
  }
  if (!columns.empty()) print_verdict(ends, emulation, columns, options.rounds, rows);
  machine.set("device", description).set("emulated", emulation);
  write_json(options, machine.set("noise", noise), rows);
  return 0;
}

}  // namespace
}  // namespace bench::transfer

int main(int argc, char** argv) {
  using namespace bench::transfer;
  const bench::Program program{
      "bench_transfer",
      "what moving a tensor costs, and from which work on it pays",
      2,
      {{"BRAID_CPU_DEVICES", "3"}, {"BRAID_THREADS", "1"}, {"BRAID_PIN", "1"}},
      {{"--max-bytes", "N", "the largest copy, as 64M (1G; 16M on emulated devices)"},
       {"--devices", "A,B",
        "one device or two that tensors move to, as cuda:0,cuda:1 (the first two of the default "
        "kind, or the default and cpu:0)"}}};
  return bench::run_program(argc, argv, program, run);
}
