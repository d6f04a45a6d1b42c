#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "split/nets.hpp"
#include "support/peer.hpp"
#include "support/timing.hpp"

// What is timed of one net: all in one interleaved run.
namespace bench::split {

/// What the command line asked for.
struct Setup {
  int devices = 2;
  std::vector<Update> updates = {Update::broadcast, Update::local};
  int rounds = 5;
  Peer* peer = nullptr;   ///< null: none
  bool no_peers = false;  ///< nobody asked for one
  std::size_t cores = 2;  ///< physical ones that this process may use
  [[nodiscard]] bool shares_cores(int n) const { return static_cast<std::size_t>(n) > cores; }
};

/// The first n devices.
[[nodiscard]] std::vector<braid::Device> first_devices(int n);

/// Steps of `rows` rows in all over the first devices. On one device there is nothing to send, and
/// both kinds of update are one.
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

/// A figure's time in us, and how far apart its turns lie; us 0: it is missing.
struct Time {
  double us = 0, noise = 0;
};

struct Measured {
  std::vector<Timed<Config>> runs;
  /// so many runs at the same time, with `rows` each: the mean of their times
  std::vector<Timed<Config>> independent;
  std::vector<Timed<PeerRow>> peers;
  [[nodiscard]] Time run(const Config& config) const;
  [[nodiscard]] Time apart(int devices, std::int64_t rows) const;
  [[nodiscard]] Time peer(const PeerRow& row) const;
};

/// Rows of the largest chunk.
[[nodiscard]] constexpr std::int64_t rows_of_device(std::int64_t batch, int devices) {
  return (batch + devices - 1) / devices;
}
/// PyTorch with so many intra-op threads, and DDP over gloo: the two processes have half the batch
/// each.
[[nodiscard]] PeerRow torch_row(const Net& net, std::int64_t batch, int threads);
[[nodiscard]] PeerRow ddp_row(const Net& net, std::int64_t batch);
constexpr int kDdpProcesses = 2;

/// The configurations of a net over 1 to n devices: strong and weak ones, and, where only one has
/// several devices, one more of half its rows, so that a model of the others can predict each.
[[nodiscard]] std::vector<Config> configurations(const Net& net, const Setup& setup);

[[nodiscard]] Measured measure(const Net& net, const Setup& setup);

/// Do one device, several, both kinds of update and the peers train alike? Says on stderr where
/// not.
struct Agreement {
  bool good = true;
  int peers = 0, silent = 0;  ///< rows of the peers that agree; that gave no losses
};
[[nodiscard]] Agreement agree(const Net& net, const Setup& setup);

/// Times recorded steps and steps that are not recorded in turn: by how much the recorder makes a
/// step longer, in parts of it, and how sure that is. While nothing is recorded the spans of a step
/// cost too little to be timed: `disabled`, in parts of it, is computed, `spans`, the records of a
/// step, times `disabled_ns`, the time of one plain Span. The other kinds of span (GroupSpan,
/// WorkSpan) are taken to cost as much a record.
struct Overhead {
  double value = 0, uncertainty = 0;
  double disabled = 0, disabled_ns = 0, spans = 0;
};
[[nodiscard]] Overhead recorder_overhead(const Net& net, const Setup& setup, Update update);

}  // namespace bench::split
