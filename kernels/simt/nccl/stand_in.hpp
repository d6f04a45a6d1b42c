#pragma once

// NCCL on emulated devices: functions of the library's names and C signatures, one process, the
// library's rules as far as a program can see them:
//  - communicators are non-blocking ones; what a group has begun is ncclInProgress until it is
//    asked for a few times, and only then on the streams
//  - nothing is done before ncclGroupEnd; a rank waits for the ranks whose numbers it needs, and
//    for no others
//  - work is queued on streams of the emulation, so that the checker sees what streams, events and
//    waits order
//  - two ranks on one device are refused, unless the version is 2.30 or newer and
//    NCCL_MULTI_RANK_GPU_ENABLE=1
//  - an abort ends what runs; what it was to write is undefined then (NaN here)
// control.hpp makes calls fail, hang and come back wrong.
namespace braid::simt::nccl {

using Function = void (*)();
/// The function of that name; null if there is none.
[[nodiscard]] Function find(const char* name) noexcept;

}  // namespace braid::simt::nccl
