#pragma once
#include <cstddef>
#include <mutex>
#include <vector>

#include <braid/core/internal/backend.hpp>

#include "cuda/runtime/gpu.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

class StreamAllocator;

/// The counters by which the blocks of a kernel learn which of them is the last one
/// (device/tickets.cuh), of one logical device. Each stream has kTickets counters, which are zero
/// between kernels: the last block sets its counter back. So kernels of one stream share them, and
/// those of two streams do not. A stream gets them when a kernel first needs them, and its work
/// sets them to zero first. A graph is recorded on a stream of its own, so each replay does that.
///
/// The counters of a graph are in its private memory. The others are not in the memory statistics;
/// when a stream ends, a later one gets its counters.
class TicketCounters {
 public:
  TicketCounters(Gpu& gpu, Device device, StreamAllocator& allocator)
      : gpu_(gpu), device_(device), allocator_(allocator) {}
  ~TicketCounters();
  TicketCounters(const TicketCounters&) = delete;
  TicketCounters& operator=(const TicketCounters&) = delete;

  /// Returns the stream's counters, creating them if there are none. Throws OutOfMemoryError,
  /// CudaError, DeviceLostError. `own`: the device's own stream.
  [[nodiscard]] unsigned* of(CudaStream& stream, CudaStream& own);
  /// Called when the stream ends. `own` waits for its work, and then the counters are another's.
  void retire(CudaStream& stream, CudaStream& own) noexcept;

 private:
  [[nodiscard]] unsigned* take(CudaStream& stream, CudaStream& own);
  [[nodiscard]] unsigned* make();
  void give_back(CudaStream& stream, unsigned* counters) noexcept;

  Gpu& gpu_;
  const Device device_;
  StreamAllocator& allocator_;
  std::mutex mutex_;
  std::vector<unsigned*> all_, spare_;  // spare: unused after the work queued on the own stream
  std::vector<Block> of_graphs_;
};

}  // namespace braid::cuda
