#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// Controls and queries of the fake NCCL, for tests, beyond NCCL's functions. Thread-safe.
namespace braid::simt::nccl {

/// What happens at the k-th call.
enum class Fault : std::uint8_t {
  none,
  /// it returns ncclInternalError and has no effect; in a group, ncclGroupEnd returns that too
  error,
  hang,         ///< it does not return before release(), not even after an abort
  late,         ///< as hang, but then it does its work
  in_progress,  ///< from this call on, communicators return ncclInProgress forever
  /// from this call on, they return ncclRemoteError, and what they have started is never queued
  asynchronous,
  stall,  ///< the next collective from this call on does not end on its devices before an abort
};
/// Injects a fault at the k-th call of the fake NCCL from now (1 is the next one). Replaces the
/// previous fault; k = 0 only removes it.
void fail_call(std::uint64_t k, Fault fault);
/// Returns true once the fault has taken effect.
[[nodiscard]] bool failed();
/// As fail_call(k, hang) for every ncclCommAbort from now on. The call first does its work, then
/// hangs.
void set_abort_hangs(bool hangs);
/// Lets all hanging calls continue.
void release();
/// Returns the number of calls of the fake NCCL since the start.
[[nodiscard]] std::uint64_t calls();

/// The order in which ranks are added: as in a ring, ((0+1)+2)+3, which is the default, or as in a
/// tree of neighbours, (0+1)+(2+3).
enum class Sum : std::uint8_t { ring, tree };
void set_sum(Sum order);
/// Sets what ncclGetVersion returns; 22809 initially.
void set_version(int version);

/// Returns the number of communicators that were created and neither destroyed nor aborted.
[[nodiscard]] int alive();
/// Returns the misuses since the last call that NCCL itself would not survive: communicators used
/// after their end, and calls that two threads made at the same time.
std::vector<std::string> take_misuses();

}  // namespace braid::simt::nccl
