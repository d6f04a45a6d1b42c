#pragma once
#include <memory>

namespace braid::simt {

/// While it lives, an overflow of a fiber's stack, an integer division by zero in a kernel and a
/// bus error are an Error instead of the end of the process: a stack for signals on this host
/// thread, and handlers that hand every other SIGSEGV to the handler there was before. Does nothing
/// under AddressSanitizer, which has its own.
class SignalGuard {
 public:
  /// `memory` is the thread's stack for signals, made at the first use.
  explicit SignalGuard(std::unique_ptr<char[]>& memory);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  bool own_stack_ = false;
};

}  // namespace braid::simt
