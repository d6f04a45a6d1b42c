#include <braid/nn/training/stop.hpp>

#include <atomic>

namespace braid::training {
namespace {

std::atomic<int> requested{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may set it");

extern "C" void braid_on_stop_signal(int signal) {
  requested.store(signal, std::memory_order_relaxed);
}

}  // namespace

int stop_requested() noexcept { return requested.load(std::memory_order_relaxed); }
int exit_status() noexcept {
  const int signal = stop_requested();
  return signal == 0 ? 0 : 128 + signal;
}

StopSignals::StopSignals() {
  requested.store(0, std::memory_order_relaxed);
  struct sigaction action{};
  action.sa_handler = braid_on_stop_signal;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

}  // namespace braid::training
