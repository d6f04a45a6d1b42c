#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/json.hpp"
#include "support/options.hpp"
#include "support/peer.hpp"

// Times a row of Braid together with PyTorch's Python and C++ interfaces, in one interleaved run.
// The faster interface counts.
namespace bench {

/// An environment variable for a peer. Below these sizes malloc neither maps separate memory for a
/// block nor returns memory to the system.
constexpr const char* kTunedMalloc =
    "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=4294967296";

/// The peer processes. Create them before Braid creates or pins threads, because a child inherits
/// its parent's affinity mask.
struct Peers {
  std::vector<std::unique_ptr<Peer>> list;  ///< with default settings; empty with --no-peers
  /// the same with kTunedMalloc, whose malloc keeps its memory; otherwise the system maps and
  /// clears it at every allocation
  std::vector<std::unique_ptr<Peer>> tuned;
  /// Prints the missing peers to stdout. `with_tuned`: starts the tuned peers too.
  Peers(const Options& options, bool with_tuned);
};

struct Beside {
  std::string name;
  double bar;  ///< required speed, as a multiple of the faster peer's
  /// the same against the peers with a tuned malloc; kShown: printed without a bar
  double tuned_bar = kNotShown;
  int ours = 0, theirs = 0;         ///< steps in a turn
  std::function<double(int)> time;  ///< steps -> us for each step
  std::string only = {};            ///< the only peer that has this row; empty: all peers
  static constexpr double kNotShown = -1, kShown = 0;
  [[nodiscard]] bool asks(const Peer& peer) const { return only.empty() || only == peer.name(); }
};

/// Times one row with one number of threads, prints its lines and adds it to the table. `noise` is
/// raised to the largest noise of all rows. Returns false if a bar is missed or cannot be judged.
[[nodiscard]] bool measure(const Beside& row, int threads, int rounds, Peers& peers,
                           std::vector<Json>& table, double& noise);

}  // namespace bench
