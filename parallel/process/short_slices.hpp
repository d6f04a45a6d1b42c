#pragma once

namespace braid::parallel::process {

/// Asks the kernel for short time slices for this thread. A thread with shorter slices runs soon
/// after it wakes up, also on a core that another thread computes on: a bucket's reduction
/// otherwise waits up to 3 ms at each of its steps. The thread gets no more time in all, and needs
/// no permission. Has no effect before Linux 6.12.
void request_short_slices() noexcept;

}  // namespace braid::parallel::process
