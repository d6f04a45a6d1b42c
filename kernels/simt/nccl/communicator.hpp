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

/// The ranks that share an id. What a hung collective waits for is the abort of any of them: all of
/// them are given up then.
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
  /// Elements that it reads, and that it writes.
  [[nodiscard]] std::size_t sends() const noexcept;
  [[nodiscard]] std::size_t receives() const noexcept;
};

/// Bytes of an element; 0 for a type that there is not here.
[[nodiscard]] std::size_t bytes_of(int type) noexcept;
/// What the library says of a part at once. ncclSuccess, ncclInvalidArgument for memory that is not
/// the device's, ncclUnhandledCudaError for its stream or a lost device.
[[nodiscard]] Result check(const Part& part);
/// Queues a collective on the streams of its parts: all ranks of a clique, or some, who then wait
/// until an abort; `stalls`: they wait in any case. Adds in the order `sum`.
void enqueue(const std::vector<Part>& parts, bool stalls, Sum sum);

}  // namespace braid::simt::nccl
