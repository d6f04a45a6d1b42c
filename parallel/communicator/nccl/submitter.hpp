#pragma once
#include <chrono>
#include <functional>

namespace braid::parallel::nccl {

using Clock = std::chrono::steady_clock;

enum class Ended { yes, late, stopped };

/// Runs `work` on the one thread of this process that calls NCCL, behind what others gave it, and
/// waits for its end, until `deadline` and while `stop()` is false. One thread, because a
/// communicator has to have one at a time, and because several communicators that share GPUs have
/// to be given their work in the same order everywhere. Where `work` does not come back, its thread
/// is given up with it and a new one goes on with what waits: so `work` owns what it uses.
/// What has not begun by then never begins. `work` throws nothing. Throws std::system_error where
/// there are no threads left.
[[nodiscard]] Ended submit(std::function<void()> work, Clock::time_point deadline,
                           const std::function<bool()>& stop);

}  // namespace braid::parallel::nccl
