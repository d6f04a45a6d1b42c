#pragma once
#include <memory>

namespace braid::simt {

/// Makes an overflow of a fiber's stack, on the calling host thread, an Error instead of the end of the process: a stack for signals, and a handler of
/// SIGSEGV that hands everything that is not an access to the guard under the running fiber to the handler there was before. Does nothing, and returns
/// nullptr, under AddressSanitizer, which has its own.
[[nodiscard]] std::unique_ptr<char[]> install_signal_stack();
void remove_signal_stack(const char* stack) noexcept;

}  // namespace braid::simt
