#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace bench {

/// A PyTorch process that waits for commands on a pipe (bench/peers/README.md). The constructor
/// starts it, so its start-up time is not part of any measurement.
class Peer {
 public:
  /// `program` is the launcher, `name` the name in tables, `cores` the value of BRAID_PIN_CORES,
  /// `variable` one more environment variable. If the peer does not start, available() is false.
  Peer(std::string name, const std::string& program, const std::string& cores,
       const std::string& variable = {});
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] bool available() const { return pid_ > 0; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The reason why the peer is not available, or its last error.
  [[nodiscard]] const std::string& error() const { return error_; }

  /// Returns the peak resident memory of the process; 0 if it is not available.
  [[nodiscard]] double peak_bytes() const;
  /// Returns the median time of a step in us; empty if the peer failed (see error()).
  [[nodiscard]] std::optional<double> run(const std::string& row, int threads, int iterations);
  /// Returns the losses of the first `count` steps; empty if the peer failed.
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
