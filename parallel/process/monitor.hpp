#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "process/store.hpp"

namespace braid::parallel::process {

/// How far a rank's communicator is: what its monitor writes into the store.
struct Progress {
  std::uint64_t entered = 0, completed = 0;  // numbers of collectives
  std::string call;                          // the text of the one that was entered last
};

/// Writes into the store that a rank has died, or that it has left after `entered` collectives.
/// Kept are the first rank that died, and of those that left the one with the fewest collectives,
/// so that the text does not grow with the number of ranks.
///
/// Throws    what the store throws
void report_death(Store& store, int rank);
void report_leaving(Store& store, int rank, std::uint64_t entered);

enum class FailureKind : char { error = 'e', timeout = 't', aborted = 'a' };

/// What the ranks tell each other beside the collectives, through the store: how far each is, that
/// it ends, and the first reason of a failure, which all ranks report. A thread of its own does it,
/// so that a rank that computes differs from one that does not answer.
class Monitor {
 public:
  /// `on_failure` is called once, on any thread, after failure() is set; `watch` by the monitor's
  /// thread in each interval. Neither is called before start().
  Monitor(std::shared_ptr<Store> store, int rank, int size, double timeout,
          std::function<void()> on_failure, std::function<void()> watch);
  ~Monitor() { stop(); }
  /// Starts the thread. Not the constructor: what the thread calls may use this monitor by the
  /// pointer that its owner sets after the constructor.
  void start();
  /// Ends the thread, and tells the others that this rank ends.
  void stop() noexcept;
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void entered(std::uint64_t number, std::string call);
  void completed(std::uint64_t number);

  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// The first failure, as CommError, CommTimeoutError or CommAbortedError; null if there is none.
  [[nodiscard]] std::exception_ptr failure() const;
  /// Ends the communicator on all ranks. If another rank has reported a reason before, that one
  /// counts.
  void fail(FailureKind kind, const std::string& reason) noexcept;
  /// Looks at once whether another rank has reported a failure, or has gone.
  void look() noexcept;
  /// The text of a deadline: which ranks have not entered collective `number`.
  [[nodiscard]] std::string missing(std::uint64_t number, const std::string& call, double seconds);
  /// The text of a message that has not arrived.
  [[nodiscard]] std::string silent(int peer, const std::string& call, double seconds);
  /// Says that this rank ends, and waits until all have said so, or the communicator fails. A rank
  /// that still reports is waited for: it computes. If one has not reported for the timeout, rank 0
  /// ends the communicator on all ranks.
  void farewell() noexcept;
  /// The time between two writes.
  [[nodiscard]] Clock::duration interval() const noexcept { return interval_; }

 private:
  void loop();
  void publish();
  /// Reads what the others have reported.
  void read();
  /// What a rank does, as far as it is known: `computes, …`, `has not answered for 3 s, …`.
  [[nodiscard]] std::string state_text(const std::optional<Store::Entry>& entry) const;
  void look_for_gone(std::string_view gone);
  /// The ranks that have not said that they end, nor reported for the timeout.
  [[nodiscard]] std::vector<int> silent_at_end(double waited);
  void set_failure(const std::string& kind_and_text) noexcept;

  std::shared_ptr<Store> store_;
  const int rank_, size_;
  const double timeout_;
  const Clock::duration interval_;
  std::function<void()> on_failure_, watch_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Progress progress_;           // with the mutex
  std::exception_ptr failure_;  // with the mutex
  bool stop_ = false;           // with the mutex
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

}  // namespace braid::parallel::process
