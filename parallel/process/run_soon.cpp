#include "process/run_soon.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace braid::parallel::process {
namespace {

// struct sched_attr of the kernel, which older C libraries do not have.
struct Attributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;  // ns; runtime is the slice of an ordinary thread
};

constexpr std::uint64_t kSlice = 100'000;     // the shortest that the kernel accepts
constexpr unsigned long kTimerSlack = 1'000;  // ns

}  // namespace

void run_soon() noexcept {
  (void)::prctl(PR_SET_TIMERSLACK, kTimerSlack, 0UL, 0UL, 0UL);
#if defined(SYS_sched_setattr) && defined(SYS_sched_getattr)
  Attributes attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != 0) return;  // not an ordinary thread: the user knows better
  attributes.size = sizeof attributes;
  attributes.runtime = kSlice;
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

}  // namespace braid::parallel::process
