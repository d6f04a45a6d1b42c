#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// What tests ask of the stand-in for NCCL beyond its functions. Any thread may call.
namespace braid::simt::nccl {

/// What the k-th call does.
enum class Fault : std::uint8_t {
  none,
  /// it returns ncclInternalError and has no effect; in a group ncclGroupEnd returns that too
  error,
  hang,         ///< it does not return before release(), not even after an abort
  late,         ///< as hang, but then it does its work
  in_progress,  ///< from it on communicators answer ncclInProgress for ever
  /// from it on they answer ncclRemoteError, and what they have begun does not come to the streams
  asynchronous,
  stall,  ///< the next collective from it on does not end on its devices before an abort
};
/// The k-th call of the stand-in's functions from now on (1 is the next one). Replaces the fault
/// before; k = 0 only ends it.
void fail_call(std::uint64_t k, Fault fault);
/// True once the fault has shown itself.
[[nodiscard]] bool failed();
/// As fail_call(k, hang) for every ncclCommAbort from now on: it first does its work, then hangs.
void set_abort_hangs(bool hangs);
/// Ends what a hang holds up.
void release();
/// Calls of the stand-in's functions since the start.
[[nodiscard]] std::uint64_t calls();

/// In which order ranks are added: as a ring does, ((0+1)+2)+3, which is the default, or as a tree
/// of neighbours, (0+1)+(2+3).
enum class Sum : std::uint8_t { ring, tree };
void set_sum(Sum order);
/// What ncclGetVersion says; 22809 at first.
void set_version(int version);

/// Communicators that were made and neither destroyed nor aborted.
[[nodiscard]] int alive();
/// Wrong uses that the library would not survive, since the last call: communicators used after
/// their end, calls that two threads made at a time.
std::vector<std::string> take_misuses();

}  // namespace braid::simt::nccl
