#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/core/io/file.hpp>
#include <braid/core/tensor.hpp>
#include <braid/nn/training/progress.hpp>

#include "training/event_file.hpp"

namespace braid::training::detail {

/// A Reporter's output and clocks; tests pass fakes.
struct Terminal {
  std::function<void(std::string_view)> write;  ///< empty: nothing is shown
  bool is_terminal = false;
  std::size_t columns = 80;
  std::function<double()> seconds;  ///< monotonic clock
  std::function<double()> clock;    ///< seconds since 1970
};
/// Returns stderr and the system's clocks.
[[nodiscard]] Terminal standard_terminal();

/// A number, possibly in a tensor that a device is still computing.
class Value {
 public:
  explicit Value(double number) : number_(number) {}
  explicit Value(Tensor tensor) : tensor_(std::move(tensor)) {}
  [[nodiscard]] double read() const { return tensor_.defined() ? tensor_.item<double>() : number_; }

 private:
  Tensor tensor_;
  double number_ = 0;
};

class Reporter {
 public:
  Reporter(const Options& options, const Place& start, Terminal terminal);
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  /// Shows and writes what is still pending.
  ~Reporter();

  void step_begins(const Place& place, std::int64_t rows);
  void step_ends();
  void report(std::string_view name, Value value);

 private:
  struct Written {
    std::int64_t step, epoch;
    double clock;
    std::string name;
    Value value;
  };
  void show(bool last);
  [[nodiscard]] std::string line(bool bar) const;
  void write_files();
  void trace(const char* name, double begin, double end);

  Terminal terminal_;
  Place start_, place_;
  double began_, epoch_began_, shown_, written_, step_began_ = 0, step_ended_;
  std::int64_t rows_ = 0, samples_ = 0, steps_ = 0;  // of this batch; of this epoch; of this run
  // a step was finished since the last line that was printed permanently
  bool unshown_ = false;
  std::vector<std::pair<std::string, Value>> newest_;
  std::vector<Written> pending_;
  std::string trace_pending_;
  std::optional<EventFile> events_;
  std::optional<io::LogFile> csv_, trace_;
};

}  // namespace braid::training::detail
