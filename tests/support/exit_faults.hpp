#pragma once

namespace braid::tests {

/// Makes a fault after this call print the stack to stderr before it ends the program, unless
/// something else handles that signal. For faults while a program exits, when Catch2 has removed
/// its own handlers: threads of CUDA, NCCL and Braid may still run then.
/// `addr2line -f -e PROGRAM OFFSET` names the function of a frame `PROGRAM(+OFFSET)`. It needs the
/// program as it was built: ./dev gpu --pack strips its copies.
void show_faults_at_exit() noexcept;

}  // namespace braid::tests
