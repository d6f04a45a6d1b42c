#pragma once
#include <csignal>

// Interrupting a run: the signal only sets a flag; the loop looks at it between two steps.
namespace braid::training {

/// The signal (SIGINT, SIGTERM) that asked the program to stop while a StopSignals lived; 0: none
/// has.
[[nodiscard]] int stop_requested() noexcept;
/// What main returns: 128 + the signal if one asked to stop, else 0.
[[nodiscard]] int exit_status() noexcept;

/// As long as it lives, the first SIGINT or SIGTERM sets stop_requested(); a second one of the same
/// kind does what it did before. The handlers before are put back at the end. One at a time; made
/// and destroyed on one thread.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction interrupt_{}, terminate_{};
};

}  // namespace braid::training
