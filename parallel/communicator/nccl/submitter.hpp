#pragma once
#include <chrono>
#include <functional>

namespace braid::parallel::nccl {

using Clock = std::chrono::steady_clock;

enum class Ended { yes, late, stopped };

/// Queues `work` on the only thread of this process that calls NCCL, and waits until it ends,
/// `deadline` passes, or `stop()` returns true. There is one thread because only one may use a
/// communicator at a time, and because communicators that share GPUs must get their work in the
/// same order everywhere. If `work` does not return, it is abandoned with its thread, and a new
/// thread continues with the queue. `work` must therefore own what it uses. Work that has not begun
/// when the wait ends never begins. `work` must not throw. Throws std::system_error if no thread
/// can be started.
[[nodiscard]] Ended submit(std::function<void()> work, Clock::time_point deadline,
                           const std::function<bool()>& stop);

}  // namespace braid::parallel::nccl
