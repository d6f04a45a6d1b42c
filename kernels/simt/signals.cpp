#include "simt/signals.hpp"

#include <csignal>
#include <mutex>

#include "simt/scheduler.hpp"

namespace braid::simt {

#if defined(SIMT_ASAN)

SignalGuard::SignalGuard(std::unique_ptr<char[]>&) {}
SignalGuard::~SignalGuard() = default;

#else

namespace {

constexpr std::size_t kSignalStackBytes = 64 << 10;
std::mutex mutex;
int guards = 0;
struct sigaction previous;

void on_fault(int number, siginfo_t* info, void* context) {
  Scheduler* s = Scheduler::running();
  if (s && s->fiber().in_guard(info->si_addr)) {
    // Leaves the handler for good: the fiber under it is given up, and the signal stack is free again once nobody stands on it. The fault came from
    // the kernel's own code, so the heap is in order.
    s->fail(Finding::stack_overflow, {}, [&] { return str("the local variables take more than the ", s->fiber().bytes(), " bytes of a thread's stack"); });
  }
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  } else {
    std::signal(number, SIG_DFL);  // the access is made again, and ends the process as it would have
  }
}

}  // namespace

SignalGuard::SignalGuard(std::unique_ptr<char[]>& memory) {
  stack_t now{};
  if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE)) {
    if (!memory) memory.reset(new char[kSignalStackBytes]);
    stack_t mine{};
    mine.ss_sp = memory.get();
    mine.ss_size = kSignalStackBytes;
    own_stack_ = sigaltstack(&mine, nullptr) == 0;
  }
  const std::lock_guard lock(mutex);
  if (guards++ > 0) return;
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous);
}

SignalGuard::~SignalGuard() {
  {
    const std::lock_guard lock(mutex);
    if (--guards == 0) sigaction(SIGSEGV, &previous, nullptr);
  }
  if (!own_stack_) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

#endif

}  // namespace braid::simt
