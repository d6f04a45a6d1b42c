#pragma once
#include <memory>

namespace braid::simt {

/// During its lifetime, a stack overflow of a fiber, an integer division by zero in a kernel and a
/// bus error in a kernel become an Error instead of ending the process. Installs a signal stack on
/// this host thread, and handlers of SIGSEGV, SIGBUS and SIGFPE that pass all other faults to the
/// previous handlers. Does nothing under AddressSanitizer, which has its own.
class SignalGuard {
 public:
  /// `memory` is the thread's signal stack, allocated at the first use.
  explicit SignalGuard(std::unique_ptr<char[]>& memory);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  bool own_stack_ = false;
};

}  // namespace braid::simt
