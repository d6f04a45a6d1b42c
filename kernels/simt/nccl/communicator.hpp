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

/// The ranks that share an id. A hung collective waits until any of them is aborted. The abort of
/// one rank aborts all.
struct Clique {
  std::vector<int> devices;  // by rank; -1: not there yet
  std::mutex mutex;
  std::condition_variable changed;
  bool aborted = false;
  void abort() {
    const std::lock_guard lock(mutex);
    aborted = true;
    changed.notify_all();
  }
  void await_abort() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return aborted; });
  }
  [[nodiscard]] bool is_aborted() {
    const std::lock_guard lock(mutex);
    return aborted;
  }
};

enum class Kind : std::uint8_t { broadcast, reduce, all_reduce, all_gather, reduce_scatter };
[[nodiscard]] const char* name_of(Kind kind) noexcept;

/// One rank's part in a collective.
struct Part {
  Kind kind;
  std::shared_ptr<Clique> clique;
  int rank;
  const void* send;
  void* recv;
  std::size_t count;
  int type, root;
  cudaStream_t stream;
  /// The number of elements that it reads, and that it writes.
  [[nodiscard]] std::size_t sends() const noexcept;
  [[nodiscard]] std::size_t receives() const noexcept;
};

/// Returns the bytes of an element, or 0 for an unsupported type.
[[nodiscard]] std::size_t bytes_of(int type) noexcept;
/// Returns the library's immediate result for a part: ncclSuccess, ncclInvalidArgument for memory
/// that does not belong to the device, or ncclUnhandledCudaError for a wrong stream or a lost
/// device.
[[nodiscard]] Result check(const Part& part);
/// Queues a collective on the streams of its parts. If only some ranks of the group take part, they
/// wait until an abort; with `stalls`, they wait in any case. Adds in the order `sum`.
void enqueue(const std::vector<Part>& parts, bool stalls, Sum sum);

}  // namespace braid::simt::nccl
