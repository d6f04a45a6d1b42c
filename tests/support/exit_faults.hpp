#pragma once

namespace braid::tests {

/// Makes a fault after this call print the stack to stderr before it ends the program, unless
/// something else handles that signal. For faults while a program exits, when Catch2 has removed
/// its own handlers: threads of CUDA, NCCL and Braid may still run then.
/// `addr2line -e PROGRAM OFFSET` names the line of a frame `PROGRAM(+OFFSET)`.
void show_faults_at_exit() noexcept;

}  // namespace braid::tests
