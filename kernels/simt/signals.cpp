#include "simt/signals.hpp"

#include <ucontext.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <mutex>

#include "simt/scheduler.hpp"
#include "simt/symbols.hpp"

namespace braid::simt {

#if defined(SIMT_ASAN)

SignalGuard::SignalGuard(std::unique_ptr<char[]>&) {}
SignalGuard::~SignalGuard() = default;

#else

namespace {

constexpr std::size_t kSignalStackBytes = 64 << 10;
std::mutex mutex;
int guards = 0;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous[std::size(kSignals)];

// The location of the fault in the kernel, or 0 if it is not known on this architecture.
Site site_of_fault([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  return static_cast<Site>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]) + 1;
#else
  return 0;
#endif
}

void on_fault(int number, siginfo_t* info, void* context) {
  Scheduler* s = Scheduler::running();
  if (s && s->fiber().in_guard(info->si_addr)) {
    // Never returns from the handler: the fiber below it is abandoned, and the signal stack can be
    // reused when nothing runs on it. The fault was caused by the kernel's own code, so the heap is
    // consistent.
    s->fail(Finding::stack_overflow, {}, [&] {
      return str("the local variables take more than the ", s->fiber().bytes(),
                 " bytes of a thread's stack");
    });
  }
  if (s && number == SIGFPE)
    s->fail_at(Finding::exception, site_of_fault(context),
               "an integer was divided by zero, or the smallest by -1");
  if (s && number == SIGBUS)
    s->fail_at(Finding::invalid_address, site_of_fault(context),
               "an access to memory that the system could not give");
  const struct sigaction& before =
      previous[std::find(std::begin(kSignals), std::end(kSignals), number) - std::begin(kSignals)];
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    // the access is repeated, and ends the process as it would have without the handler
    std::signal(number, SIG_DFL);
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
  struct sigaction action{};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    sigaction(kSignals[i], &action, &previous[i]);
}

SignalGuard::~SignalGuard() {
  {
    const std::lock_guard lock(mutex);
    if (--guards == 0)
      for (std::size_t i = 0; i < std::size(kSignals); ++i)
        sigaction(kSignals[i], &previous[i], nullptr);
  }
  if (!own_stack_) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

#endif

}  // namespace braid::simt
