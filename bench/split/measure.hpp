#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "split/nets.hpp"
#include "support/peer.hpp"
#include "support/timing.hpp"

// The measurements of one net, all in one interleaved run.
namespace bench::split {

/// The settings from the command line.
struct Setup {
  int devices = 2;
  std::vector<Update> updates = {Update::broadcast, Update::local};
  int rounds = 5;
  Peer* peer = nullptr;   ///< null: no peer
  bool no_peers = false;  ///< --no-peers was given
  std::size_t cores = 2;  ///< physical cores that this process may use
  [[nodiscard]] bool shares_cores(int n) const { return static_cast<std::size_t>(n) > cores; }
};

/// Returns the first n devices.
[[nodiscard]] std::vector<braid::Device> first_devices(int n);

/// Training steps with `rows` rows in all over the first devices. On one device nothing is sent, so
/// both kinds of update are the same.
struct Config {
  int devices = 1;
  std::int64_t rows = 0;
  Update update = Update::broadcast;
  [[nodiscard]] bool operator==(const Config&) const = default;
};

struct PeerRow {
  std::string name;
  int threads = 1;
  [[nodiscard]] bool operator==(const PeerRow&) const = default;
};

template <class Key> struct Timed {
  Key key;
  Series series;
};

/// A time in us and its noise, the relative difference of its turns; us 0: missing.
struct Time {
  double us = 0, noise = 0;
};

struct Measured {
  std::vector<Timed<Config>> runs;
  /// key.devices runs at the same time, with key.rows rows each: the mean of their times
  std::vector<Timed<Config>> independent;
  std::vector<Timed<PeerRow>> peers;
  [[nodiscard]] Time run(const Config& config) const;
  [[nodiscard]] Time apart(int devices, std::int64_t rows) const;
  [[nodiscard]] Time peer(const PeerRow& row) const;
};

/// Returns the number of rows of the largest chunk.
[[nodiscard]] constexpr std::int64_t rows_of_device(std::int64_t batch, int devices) {
  return (batch + devices - 1) / devices;
}
/// The peers' rows: PyTorch with `threads` intra-op threads, and DDP over gloo, whose two processes
/// have half the batch each.
[[nodiscard]] PeerRow torch_row(const Net& net, std::int64_t batch, int threads);
[[nodiscard]] PeerRow ddp_row(const Net& net, std::int64_t batch);
constexpr int kDdpProcesses = 2;

/// Returns the configurations of a net over 1 to n devices, strong and weak. If only one of them
/// has several devices, adds another with half its rows, so that each can be predicted by a model
/// of the others.
[[nodiscard]] std::vector<Config> configurations(const Net& net, const Setup& setup);

[[nodiscard]] Measured measure(const Net& net, const Setup& setup);

/// Checks that one device, several devices, both kinds of update and the peers compute the same
/// training. Prints differences to stderr.
struct Agreement {
  bool good = true;
  int peers = 0, silent = 0;  ///< peer rows that agree; peer rows without losses
};
[[nodiscard]] Agreement agree(const Net& net, const Setup& setup);

/// Times recorded and unrecorded steps alternately. `value` is the relative increase of the step
/// time by the recorder, `uncertainty` its standard error. While nothing is recorded the spans cost
/// too little to be timed, so `disabled`, their share of a step, is computed: `spans` (records in a
/// step) times `disabled_ns` (the time of one plain Span). The other kinds of span (GroupSpan,
/// WorkSpan) are assumed to cost the same for each record.
struct Overhead {
  double value = 0, uncertainty = 0;
  double disabled = 0, disabled_ns = 0, spans = 0;
};
[[nodiscard]] Overhead recorder_overhead(const Net& net, const Setup& setup, Update update);

}  // namespace bench::split
