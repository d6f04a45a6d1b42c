#pragma once
#include <csignal>

// Interrupting a run: the signal handler only sets a flag, which the training loop checks between
// two steps.
namespace braid::training {

/// Returns the signal (SIGINT or SIGTERM) received since the last StopSignals was created, or 0.
[[nodiscard]] int stop_requested() noexcept;
/// Returns the exit status for main: 128 + the signal if one was received, else 0.
[[nodiscard]] int exit_status() noexcept;

/// RAII guard: while it exists, the first SIGINT or SIGTERM sets stop_requested(); a second one of
/// the same kind has its default effect. The destructor restores the previous handlers. Only one
/// may exist at a time; create and destroy it on one thread.
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
