#include "cuda/runtime/stream.hpp"

#include <mutex>

#include <braid/core/error.hpp>

#include "cuda/runtime/device_errors.hpp"
#include "cuda/runtime/errors.hpp"

namespace braid::cuda {

CudaEvent::~CudaEvent() {
  if (native_ != nullptr && !gpu_.lost()) settle(cudaEventDestroy(native_), gpu_);
}

cudaEvent_t CudaEvent::made() {
  if (native_ == nullptr) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, timed_ ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreateWithFlags", gpu_, device_);
    native_ = event;
  }
  return native_;
}

bool CudaEvent::done() const {
  require_working(gpu_, device_);
  if (native_ == nullptr) return true;
  const cudaError_t state = cudaEventQuery(native_);
  if (state == cudaErrorNotReady) {
    (void)cudaGetLastError();  // not an error
    return false;
  }
  check(state, "cudaEventQuery", gpu_, device_);
  return true;
}

void CudaEvent::synchronize() const {
  await();
  throw_device_error(device_);
}

void CudaEvent::await() const {
  require_working(gpu_, device_);
  if (native_ != nullptr)
    check(cudaEventSynchronize(native_), "cudaEventSynchronize", gpu_, device_);
}

CudaStream::~CudaStream() {
  cudaStream_t stream = native_.load(std::memory_order_acquire);
  // what is queued still runs
  if (stream != nullptr && !gpu_.lost()) settle(cudaStreamDestroy(stream), gpu_);
}

cudaStream_t CudaStream::get() {
  require_working(gpu_, device());
  if (cudaStream_t stream = native_.load(std::memory_order_acquire)) return stream;
  const std::lock_guard lock(mutex_);
  if (cudaStream_t stream = native_.load(std::memory_order_relaxed)) return stream;
  const DeviceGuard guard(gpu_, device());
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags",
        gpu_, device());
  native_.store(stream, std::memory_order_release);
  return stream;
}

void CudaStream::refuse_in_graph(const char* op) const {
  if (graph() != nullptr)
    throw CaptureError(str(op, ": expected a captured step without events and other streams of ",
                           device(), ", got one with"));
}

void CudaStream::record(Event& event) {
  refuse_in_graph("record");
  auto* const own = dynamic_cast<CudaEvent*>(&event);
  // an event of another backend counts as done, so the work must be done
  if (own == nullptr) return synchronize();
  cudaStream_t stream = get();
  const DeviceGuard guard(gpu_, device());
  check(cudaEventRecord(own->made(), stream), "cudaEventRecord", gpu_, device());
}

void CudaStream::wait(const Event& event) {
  refuse_in_graph("wait");
  const auto* const own = dynamic_cast<const CudaEvent*>(&event);
  if (own == nullptr) return event.synchronize();
  cudaStream_t stream = get();
  if (own->native() == nullptr) return;
  const DeviceGuard guard(gpu_, device());
  check(cudaStreamWaitEvent(stream, own->native(), 0), "cudaStreamWaitEvent", gpu_, device());
}

void CudaStream::wait_for(Stream& earlier) {
  auto* const own = dynamic_cast<CudaStream*>(&earlier);
  refuse_in_graph("wait_for");
  if (own == nullptr) return earlier.synchronize();
  own->refuse_in_graph("wait_for");
  try {
    own->precede(*this);
  } catch (...) {  // a caller that frees memory continues after the error, so the work must be done
    own->settle_or_lose(gpu_);
    throw;
  }
}

void CudaStream::synchronize() {
  require_working(gpu_, device());
  if (graph() != nullptr)
    throw CaptureError(str("synchronize: expected a captured step that does not wait for ",
                           device(), ", got one that does"));
  if (cudaStream_t stream = native_.load(std::memory_order_acquire))
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", gpu_, device());
  throw_device_error(device());
}

void CudaStream::precede(CudaStream& later) {
  if (&later == this || native() == nullptr) return;
  cudaStream_t waiting = later.get();
  // a wait refers to the event's last recording, so one event serves all stream dependencies, one
  // at a time
  const std::lock_guard lock(mutex_);
  record(dependency_);
  const DeviceGuard guard(later.gpu_, later.device());
  check(cudaStreamWaitEvent(waiting, dependency_.native(), 0), "cudaStreamWaitEvent", later.gpu_,
        later.device());
}

bool CudaStream::idle() const noexcept {
  cudaStream_t stream = native_.load(std::memory_order_acquire);
  if (stream == nullptr) return true;
  const cudaError_t state = gpu_.lost() ? cudaErrorUnknown : cudaStreamQuery(stream);
  if (state == cudaErrorNotReady) (void)cudaGetLastError();  // not an error
  else if (state != cudaSuccess) settle(state, gpu_);
  return state == cudaSuccess;
}

bool CudaStream::settle_work() noexcept {
  cudaStream_t stream = native_.load(std::memory_order_acquire);
  if (stream == nullptr) return true;
  return !gpu_.lost() && settle(cudaStreamSynchronize(stream), gpu_);
}

void CudaStream::settle_or_lose(Gpu& other) noexcept {
  if (settle_work() || settle_work()) return;
  gpu_.lose(cudaErrorUnknown);
  other.lose(cudaErrorUnknown);
}

}  // namespace braid::cuda
