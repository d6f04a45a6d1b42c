#include "cuda/runtime/tickets.hpp"

#include <algorithm>

#include "cuda/launch.hpp"
#include "cuda/runtime/allocator.hpp"
#include "cuda/runtime/errors.hpp"

namespace braid::cuda {

static constexpr std::size_t kBytes = kTickets * sizeof(unsigned);

TicketCounters::~TicketCounters() {
  for (unsigned* const counters : all_)
    if (!gpu_.lost()) settle(cudaFree(counters), gpu_);
}

unsigned* TicketCounters::make() {
  const DeviceGuard guard(gpu_, device_);
  void* data = nullptr;
  bool made = check_memory(cudaMalloc(&data, kBytes), "cudaMalloc", gpu_, device_);
  if (!made) {  // the caches of the GPU's devices may hold the memory
    allocator_.trim();
    made = check_memory(cudaMalloc(&data, kBytes), "cudaMalloc", gpu_, device_);
  }
  if (!made) allocator_.refuse(kBytes, "cudaMalloc: cudaErrorMemoryAllocation");
  return static_cast<unsigned*>(data);
}

// Returns counters that only `stream` will use.
unsigned* TicketCounters::take(CudaStream& stream, CudaStream& own) {
  if (stream.has_private_memory()) {
    of_graphs_.reserve(of_graphs_.size() + 1);
    of_graphs_.push_back(allocator_.allocate(kBytes, stream));
    return static_cast<unsigned*>(of_graphs_.back().data);
  }
  if (spare_.empty()) {
    all_.reserve(all_.size() + 1);
    spare_.reserve(all_.size() + 1);
    all_.push_back(make());
    return all_.back();
  }
  own.precede(stream);
  unsigned* const counters = spare_.back();
  spare_.pop_back();
  return counters;
}

// The stream no longer uses the counters, and the own stream waits for those that do.
void TicketCounters::give_back(CudaStream& stream, unsigned* counters) noexcept {
  if (!stream.has_private_memory()) return spare_.push_back(counters);  // `take` has reserved room
  const auto block = std::find_if(of_graphs_.begin(), of_graphs_.end(),
                                  [&](const Block& b) { return b.data == counters; });
  allocator_.release(*block, stream);
  of_graphs_.erase(block);
}

unsigned* TicketCounters::of(CudaStream& stream, CudaStream& own) {
  const std::lock_guard lock(mutex_);
  if (unsigned* const counters = stream.tickets()) return counters;
  unsigned* const counters = take(stream, own);
  try {
    set_zero("tickets", counters, kBytes, stream);
  } catch (...) {
    give_back(stream, counters);
    throw;
  }
  // Now other threads may queue kernels that use them.
  stream.set_tickets(counters);
  return counters;
}

void TicketCounters::retire(CudaStream& stream, CudaStream& own) noexcept {
  unsigned* const counters = stream.tickets();
  if (counters == nullptr) return;
  const std::lock_guard lock(mutex_);
  try {
    if (!stream.has_private_memory()) stream.precede(own);
  } catch (...) {
    if (!stream.settle_work()) return;  // its work may still use them: nobody else may
  }
  give_back(stream, counters);
}

}  // namespace braid::cuda
