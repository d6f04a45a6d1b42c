#include "cuda/runtime/tickets.hpp"

#include "cuda/runtime/allocator.hpp"
#include "cuda/runtime/errors.hpp"
#include "cuda/runtime/graph.hpp"

namespace braid::cuda {
namespace {

  constexpr std::size_t kBytes = TicketCounters::kTickets * sizeof(unsigned); }  // namespace

TicketCounters::~TicketCounters() {
  for (unsigned* const counters : all_)
    if (!gpu_.lost()) settle(cudaFree(counters), gpu_);
}

unsigned* TicketCounters::make(CudaStream& stream) {
  const bool recorded = stream.graph() != nullptr;
  const RelaxedCapture relaxed(recorded);
  const DeviceGuard guard(gpu_, device_);
  void* data = nullptr;
  bool made = check_memory(cudaMalloc(&data, kBytes), "cudaMalloc", gpu_, device_);
  if (!made && !recorded) {  // Braid's cache may hold the memory
    allocator_.empty_cache();
    made = check_memory(cudaMalloc(&data, kBytes), "cudaMalloc", gpu_, device_);
  }
  if (!made) allocator_.refuse(kBytes, "cudaMalloc: cudaErrorMemoryAllocation");
  return static_cast<unsigned*>(data);
}

unsigned* TicketCounters::of(CudaStream& stream, CudaStream& own) {
  if (unsigned* const counters = stream.tickets()) return counters;
  const std::lock_guard lock(mutex_);
  if (unsigned* const counters = stream.tickets()) return counters;
  unsigned* counters = nullptr;
  // a recording cannot wait for the own stream
  if (stream.graph() == nullptr && !spare_.empty()) {
    own.precede(stream);
    counters = spare_.back();
    spare_.pop_back();
  } else {
    all_.reserve(all_.size() + 1);
    spare_.reserve(all_.size() + 1);
    counters = make(stream);
    all_.push_back(counters);
  }
  stream.set_tickets(counters);
  try {
    clear(stream);
  } catch (...) {
    stream.set_tickets(nullptr);  // clear again at the next use
    spare_.push_back(counters);
    throw;
  }
  return counters;
}

void TicketCounters::clear(CudaStream& stream) const {
  unsigned* const counters = stream.tickets();
  if (counters == nullptr) return;
  cudaStream_t native = stream.get();
  const DeviceGuard guard(gpu_, device_);
  check(cudaMemsetAsync(counters, 0, kBytes, native), "cudaMemsetAsync", gpu_, device_);
}

void TicketCounters::retire(CudaStream& stream, CudaStream& own) noexcept {
  unsigned* const counters = stream.tickets();
  if (counters == nullptr) return;
  try {
    stream.precede(own);
  } catch (...) {
    if (!stream.settle_work()) return;  // its work may still use them: nobody else may
  }
  const std::lock_guard lock(mutex_);
  spare_.push_back(counters);  // `of` has reserved room
}

}  // namespace braid::cuda
