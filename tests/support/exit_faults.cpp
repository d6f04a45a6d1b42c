#include "support/exit_faults.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

namespace braid::tests {
namespace {

constexpr int kFrames = 64;

void show(int) {  // SA_RESETHAND: the instruction faults again, and ends the program
  constexpr std::string_view text = "a fault after the tests, while the program exits:\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  void* frames[kFrames];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, kFrames), STDERR_FILENO);
}

}  // namespace

void show_faults_at_exit() noexcept {
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // its first call loads a library, which a handler must not do
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    struct sigaction now = {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    now.sa_handler = show;
    now.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &now, nullptr);
  }
}

}  // namespace braid::tests
