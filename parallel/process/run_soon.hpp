#pragma once

namespace braid::parallel::process {

/// Asks the kernel to run this thread soon after it wakes up: short time slices and timers that are
/// not rounded. A thread with shorter slices comes first also on a core that another thread
/// computes on: a bucket's reduction otherwise waits up to 3 ms at each of its steps. The thread
/// gets no more time in all, and needs no permission. Slices have no effect before Linux 6.12.
void run_soon() noexcept;

}  // namespace braid::parallel::process
