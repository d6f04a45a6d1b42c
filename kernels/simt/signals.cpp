#include "simt/signals.hpp"

#include <csignal>
#include <mutex>

#include "simt/scheduler.hpp"

namespace braid::simt {

#if defined(SIMT_ASAN)

std::unique_ptr<char[]> install_signal_stack() { return nullptr; }
void remove_signal_stack(const char*) noexcept {}

#else

namespace {

constexpr std::size_t kSignalStackBytes = 64 << 10;
struct sigaction previous;

void on_fault(int number, siginfo_t* info, void* context) {
  Scheduler* s = Scheduler::running();
  if (s && s->fiber().in_guard(info->si_addr)) {
    // Leaves the handler for good: the fiber under it is given up, and the signal stack is free again once nobody stands on it. The fault came from
    // the kernel's own code, so the heap is in order.
    s->fail(details_at(Finding::stack_overflow, {}),
            str("the local variables take more than the ", s->fiber().bytes(), " bytes of a thread's stack"));
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

std::unique_ptr<char[]> install_signal_stack() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous);
  });
  stack_t now{};
  if (sigaltstack(nullptr, &now) == 0 && !(now.ss_flags & SS_DISABLE)) return nullptr;  // the thread has one
  std::unique_ptr<char[]> memory(new char[kSignalStackBytes]);
  stack_t mine{};
  mine.ss_sp = memory.get();
  mine.ss_size = kSignalStackBytes;
  if (sigaltstack(&mine, nullptr) != 0) return nullptr;
  return memory;
}

void remove_signal_stack(const char* stack) noexcept {
  if (!stack) return;
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || now.ss_sp != stack) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

#endif

}  // namespace braid::simt
