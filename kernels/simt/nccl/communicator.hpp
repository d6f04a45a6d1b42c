#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "simt/nccl/control.hpp"
#include "simt/runtime/cuda_types.hpp"

namespace braid::simt::nccl {

using Result = int;
inline constexpr Result kSuccess = 0, kUnhandledCudaError = 1, kInternalError = 3,
                        kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;

/// The ranks that share an id. A hung collective waits until its rank is aborted. The abort of one
/// rank aborts all, unless they are `apart`.
struct RankGroup {
  std::vector<int> devices;  // by rank; -1: not there yet
  // Made by inits of different ncclGroups, as by ranks that are different processes: the parts of a
  // collective come from different ncclGroups.
  bool apart = false;
  std::vector<bool> aborted;  // by rank, with the mutex
  std::mutex mutex;
  std::condition_variable changed;
  void abort(int rank) {
    const std::lock_guard lock(mutex);
    aborted.resize(devices.size());
    if (apart) aborted[static_cast<std::size_t>(rank)] = true;
    else aborted.assign(devices.size(), true);
    changed.notify_all();
  }
  void await_abort(int rank) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return has_aborted(rank); });
  }
  [[nodiscard]] bool is_aborted(int rank) {
    const std::lock_guard lock(mutex);
    return has_aborted(rank);
  }

 private:
  [[nodiscard]] bool has_aborted(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return at < aborted.size() && aborted[at];
  }
};

enum class Kind : std::uint8_t {
  broadcast,
  reduce,
  all_reduce,
  all_gather,
  reduce_scatter,
  send,
  recv
};
[[nodiscard]] const char* name_of(Kind kind) noexcept;

/// One rank's part in a collective.
struct Part {
  Kind kind;
  std::shared_ptr<RankGroup> rank_group;
  int rank;
  const void* send;
  void* recv;
  std::size_t count;
  int type, op, root;  // op: sum, product, max, min; of send and recv, root is the other rank
  cudaStream_t stream;
  /// The number of elements that it reads, and that it writes.
  [[nodiscard]] std::size_t sends() const noexcept;
  [[nodiscard]] std::size_t receives() const noexcept;
  /// True for send and recv, in which two parts take part, of one rank or two.
  [[nodiscard]] bool pairs() const noexcept { return kind == Kind::send || kind == Kind::recv; }
};

/// Returns the bytes of an element, or 0 for an unsupported type.
[[nodiscard]] std::size_t bytes_of(int type) noexcept;
/// Returns the library's immediate result for a part: ncclSuccess, ncclInvalidArgument for memory
/// that does not belong to the device, or ncclUnhandledCudaError for a wrong stream or a lost
/// device.
[[nodiscard]] Result check(const Part& part);
/// Queues a collective on the streams of its parts. If only some ranks of the group take part, they
/// wait until an abort; with `stalls`, they wait in any case. Reduces in the order `sum`.
void enqueue(const std::vector<Part>& parts, bool stalls, Sum sum);

}  // namespace braid::simt::nccl
