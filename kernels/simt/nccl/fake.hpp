#pragma once

// A fake NCCL on emulated devices: functions with the library's names and C signatures, in one
// process, with the library's rules as far as a program can observe them:
//   - Communicators are non-blocking. What a group has started is ncclInProgress until it is polled
//     a few times, and is only then queued on the streams.
//   - Nothing is done before ncclGroupEnd. A rank waits for the ranks whose data it needs, and for
//     no others.
//   - Work is queued on streams of the emulation, so that the checker sees what streams, events and
//     waits order.
//   - Ranks that are made in different ncclGroups are like different processes: each starts its
//     part of a collective, and is in progress until all parts are there. An abort ends its own
//     rank only.
//   - Two ranks on one device are refused, unless the version is 2.30 or newer and
//     NCCL_MULTI_RANK_GPU_ENABLE=1.
//   - An abort ends what runs. The output of such an operation is then undefined (NaN here).
// control.hpp makes calls fail, hang and return wrong results.
namespace braid::simt::nccl {

using Function = void (*)();
/// Returns the function with that name, or null if there is none.
[[nodiscard]] Function find(const char* name) noexcept;

}  // namespace braid::simt::nccl
