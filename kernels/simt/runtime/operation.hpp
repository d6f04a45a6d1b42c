#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simt/launch.hpp"
#include "simt/location.hpp"

namespace braid::simt::detail {

/// A vector clock: for each slot (a stream, or the host) the number of the last operation there
/// that is known to be complete.
class Clock {
 public:
  [[nodiscard]] std::uint32_t at(std::uint32_t slot) const noexcept {
    return slot < ticks_.size() ? ticks_[slot] : 0;
  }
  void set(std::uint32_t slot, std::uint32_t tick) {
    if (slot >= ticks_.size()) ticks_.resize(slot + 1);
    ticks_[slot] = tick;
  }
  void join(const Clock& other) {
    if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
    for (std::size_t i = 0; i < other.ticks_.size(); ++i)
      ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }

 private:
  std::vector<std::uint32_t> ticks_;
};

enum class OpKind : std::uint8_t {
  kernel,
  copy,
  memset,
  record,
  wait,
  host_function,
  allocate,
  free,
  host
};

struct StreamState;
struct Capture;

/// One operation: an entry of a stream's queue, or (kind host) a point in the host's time at which
/// memory was freed. Its clock is known when it is queued and never changes. Whether two operations
/// are ordered therefore does not depend on the order in which the executor runs them.
struct Op : std::enable_shared_from_this<Op> {
  std::uint32_t id = 0;
  OpKind kind = OpKind::host;
  const char* call = "";                ///< the runtime call
  const std::string* kernel = nullptr;  ///< name of the kernel
  std::shared_ptr<const Closure> body;  ///< the kernel with its arguments, until it has run
  int device = 0;
  std::uint64_t stream = 0;  ///< number of the stream; 0: the legacy default stream
  bool on_stream = false;
  Location where;
  Clock clock;
  std::uint32_t slot = 0, tick = 0;
  /// when this was queued, the host knew that all operations up to this id were complete
  std::uint32_t covered = 0;
  /// operations that must be done before, in addition to the stream's order
  std::vector<std::shared_ptr<Op>> needs;
  std::function<void(Op&)> run;  ///< the work; called without the runtime's lock
  bool running = false;          ///< a host function that has started and is not done
  bool done = false;
  /// of an operation that a capture records instead of queueing it; it never runs itself
  std::shared_ptr<Capture> capture;
  /// called, under the lock, when the operation of a graph is queued
  std::function<void(const std::shared_ptr<Op>&)> queued;
  bool always = false;                         ///< also runs on a lost device: it frees memory
  std::chrono::steady_clock::time_point time;  ///< when it was done
};
using OpPtr = std::shared_ptr<Op>;

/// True if `earlier` is complete before `later` starts, whatever order the executor chooses.
[[nodiscard]] inline bool ordered(const Op& earlier, const Op& later) noexcept {
  return &earlier == &later || later.clock.at(earlier.slot) >= earlier.tick;
}

/// `cudaMemcpyAsync on stream 2 of cuda:0 (train.cpp:12)`.
[[nodiscard]] std::string describe(const Op& op);
/// `train.cpp:12`.
[[nodiscard]] std::string describe(Location where);
/// Returns the part of the path after the last slash.
[[nodiscard]] std::string base_name(const char* path);

}  // namespace braid::simt::detail
