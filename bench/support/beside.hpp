#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/json.hpp"
#include "support/options.hpp"
#include "support/peer.hpp"

// A row timed beside PyTorch's two interfaces, in Python and in C++, in one interleaved run; the
// faster one counts.
namespace bench {

/// For a peer's environment: below these sizes malloc neither maps memory of its own for a block
/// nor gives any back.
constexpr const char* kTunedMalloc =
    "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=4294967296";

/// The processes. Make them before Braid makes threads or pins one: a child inherits its parent's
/// mask.
struct Peers {
  std::vector<std::unique_ptr<Peer>> list;  ///< as anyone would start them; empty with --no-peers
  /// the same with a malloc that keeps its memory, instead of having it mapped and cleared by the
  /// system each time
  std::vector<std::unique_ptr<Peer>> tuned;
  /// Says on stdout which are missing. `tuned`: start those too.
  Peers(const Options& options, bool with_tuned);
};

struct Beside {
  std::string name;
  double bar;  ///< how many times faster than the faster peer
  /// than the faster one with a tuned malloc; kShown: printed without a bar
  double tuned_bar = kNotShown;
  int ours = 0, theirs = 0;         ///< steps a turn
  std::function<double(int)> time;  ///< steps -> us a step
  std::string only = {};            ///< the one peer that has this row; the others are not asked
  static constexpr double kNotShown = -1, kShown = 0;
  [[nodiscard]] bool asks(const Peer& peer) const { return only.empty() || only == peer.name(); }
};

/// Times one row at one number of threads, prints its lines and adds it to the table; `noise`
/// becomes the largest of all rows. False if a bar is missed or cannot be judged.
[[nodiscard]] bool measure(const Beside& row, int threads, int rounds, Peers& peers,
                           std::vector<Json>& table, double& noise);

}  // namespace bench
