#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace bench {

/// A peer program that waits on a pipe for commands (bench/peers/README.md). It is started at once,
/// so that its start-up is no part of any time.
class Peer {
 public:
  /// `program`: the launcher; `name`: what tables call it; `cores`: BRAID_PIN_CORES; `variable`:
  /// one more of its environment. A peer that does not start is not available().
  Peer(std::string name, const std::string& program, const std::string& cores,
       const std::string& variable = {});
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] bool available() const { return pid_ > 0; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Why it is not available, or what went wrong last.
  [[nodiscard]] const std::string& error() const { return error_; }

  /// The most memory that it has had (resident); 0 if it is not available.
  [[nodiscard]] double peak_bytes() const;
  /// Median time of a step in us; nothing if the peer failed (error() says how).
  [[nodiscard]] std::optional<double> run(const std::string& row, int threads, int iterations);
  /// Losses of the first `count` steps; empty if the peer failed.
  [[nodiscard]] std::vector<double> losses(const std::string& row, int threads, int count);

 private:
  [[nodiscard]] std::optional<std::string> ask(const std::string& line);
  [[nodiscard]] std::optional<std::string> read_line(int timeout_s);
  void stop(bool kill_it);

  std::string name_, error_, buffer_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace bench
